/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/compact/rollup.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/compact/compact_plan.h"

enum { TENS, HOURS, DAYS };

static const int64_t grains_ns[ROLLUP_GRAINS] = { ROLLUP_TEN_NS, ROLLUP_HOUR_NS, ROLLUP_DAY_NS };

static int64_t window_of(int64_t at_ns, int64_t window_ns)
{
	return compact_window(at_ns, window_ns);
}

/* Counting. */

void rollup_count_begin(struct rollup_count *count, uint32_t nodes_count)
{
	*count = (struct rollup_count){ .first_ns = INT64_MAX, .last_ns = INT64_MIN };
	for (int i = 0; i < ROLLUP_GRAINS; i++)
		count->last_window[i] = mem_new_array(uint64_t, nodes_count);
}

void rollup_count_free(struct rollup_count *count)
{
	for (int i = 0; i < ROLLUP_GRAINS; i++)
		free(count->last_window[i]);
}

static void count_rows(struct rollup_count *count, int grain, const struct part_report *report)
{
	uint64_t window = count->windows[grain];
	uint64_t *last = count->last_window[grain];

	assert(window); /* 0 means that no window counted the node yet */
	for (uint32_t i = 0; i < report->row_count; i++) {
		count->rows[grain] += last[report->nodes[i]] != window;
		last[report->nodes[i]] = window;
	}
}

void rollup_count_report(struct rollup_count *count, const struct part_report *report)
{
	bool other = !count->begun || count->series != report->series;

	assert(!count->begun || report->series >= count->series);
	for (int grain = 0; grain < ROLLUP_GRAINS; grain++) {
		int64_t at_ns = window_of(report->start_ns, grains_ns[grain]);

		count->windows[grain] += other || count->window_ns[grain] != at_ns;
		count->window_ns[grain] = at_ns;
		count_rows(count, grain, report);
	}
	count->series = report->series;
	count->begun = true;
	count->raw_rows += report->row_count;
	count->raw_reports++;
	if (report->start_ns < count->first_ns)
		count->first_ns = report->start_ns;
	if (report->start_ns > count->last_ns)
		count->last_ns = report->start_ns;
}

/* The sums of one window. */
struct sums {
	int64_t *values; /* by node, then column */
	bool *present;	 /* by node: in `nodes` */
	uint32_t *nodes;
	uint32_t nodes_count, nodes_capacity;
	struct part_report report; /* of it: all but the rows */
};

static void sums_init(struct sums *sums, size_t nodes, uint32_t columns)
{
	*sums = (struct sums){ 0 };
	sums->values = mem_new_array(int64_t, nodes * columns);
	sums->present = mem_new_array(bool, nodes);
}

static void sums_free(struct sums *sums)
{
	free(sums->values);
	free(sums->present);
	free(sums->nodes);
}

static void add_span(struct part_report *sum, const struct part_report *report)
{
	if (!sum->reports_count || report->start_ns < sum->start_ns)
		sum->start_ns = report->start_ns;
	if (!sum->reports_count || report->end_ns > sum->end_ns)
		sum->end_ns = report->end_ns;
	if (__builtin_add_overflow(sum->duration_ns, report->duration_ns, &sum->duration_ns))
		sum->duration_ns = INT64_MAX;
	sum->reports_count += report->reports_count;
}

static void sums_add(struct sums *sums, const struct part_report *report, uint32_t columns)
{
	add_span(&sums->report, report);
	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t node = report->nodes[i];
		int64_t *into = sums->values + (size_t)node * columns;
		const int64_t *from = report->values + (size_t)i * columns;

		if (!sums->present[node]) {
			sums->present[node] = true;
			mem_grow(sums->nodes, sums->nodes_count, sums->nodes_capacity);
			sums->nodes[sums->nodes_count++] = node;
		}
		for (uint32_t c = 0; c < columns; c++)
			into[c] = (int64_t)((uint64_t)into[c] + (uint64_t)from[c]);
	}
}

/* The sums as a report, whose values the caller frees; they are empty then, but for the nodes. */
static struct part_report sums_take(struct sums *sums, uint32_t columns)
{
	int64_t *values = mem_new_array(int64_t, (size_t)sums->nodes_count * columns);
	struct part_report report = sums->report;

	assert(report.reports_count);
	for (uint32_t i = 0; i < sums->nodes_count; i++) {
		int64_t *from = sums->values + (size_t)sums->nodes[i] * columns;

		memcpy(values + (size_t)i * columns, from, columns * sizeof(*values));
		memset(from, 0, columns * sizeof(*from));
		sums->present[sums->nodes[i]] = false;
	}
	report.row_count = sums->nodes_count;
	report.nodes = sums->nodes;
	report.values = values;
	sums->nodes_count = 0;
	sums->report = (struct part_report){ 0 };
	return report;
}

/* Hands the sums to the writer and empties them. */
static int sums_write(struct sums *sums, enum segment_level level, uint32_t columns,
		      struct part_writer *writer, struct err *err)
{
	struct part_report report = sums_take(sums, columns);
	int rc;

	assert(level > SEGMENT_RAW && level < SEGMENT_LEVELS);
	rc = part_writer_report(writer, level, &report, err);
	free((void *)(uintptr_t)report.values);
	return rc;
}

/* Levels of series: the reports of a window come one after the other. */

struct by_series {
	const struct rollup_job *job;
	enum segment_level level;
	int64_t window_ns, at_ns; /* the window that is being summed */
	uint32_t columns;
	struct sums sums;
};

static int take_report(struct by_series *by, const struct part_report *report, struct err *err)
{
	int64_t at_ns = window_of(report->start_ns, by->window_ns);
	struct part_report *sum = &by->sums.report;
	int rc = 0;

	if (sum->reports_count && (sum->series != report->series || by->at_ns != at_ns))
		rc = sums_write(&by->sums, by->level, by->columns, by->job->writer, err);
	by->at_ns = at_ns;
	sum->series = report->series;
	if (!rc)
		sums_add(&by->sums, report, by->columns);
	return rc;
}

static int write_by_series(const struct rollup_job *job, enum segment_level level,
			   int64_t window_ns, struct err *err)
{
	struct by_series by = { .job = job,
				.level = level,
				.window_ns = window_ns,
				.columns = job->view->groups[0].column_count };
	struct part_report report;
	int rc = report_stream_begin(job->stream, SEGMENT_ROWS, err);

	sums_init(&by.sums, job->view->nodes_count, by.columns);
	while (!rc) {
		int more = report_stream_next(job->stream, &report, err);

		if (more <= 0) {
			rc = more;
			break;
		}
		rc = take_report(&by, &report, err);
	}
	if (!rc && by.sums.report.reports_count)
		rc = sums_write(&by.sums, level, by.columns, job->writer, err);
	sums_free(&by.sums);
	return rc;
}

/* Levels of the whole partition: as many windows at once as there is memory for. */

struct by_window {
	const struct rollup_job *job;
	enum segment_level level;
	int64_t window_ns, from_ns; /* of the first of the windows */
	size_t windows;
	uint32_t columns;
	struct sums *sums;
};

/* Counters are made for windows that have reports only. */
static void add_to_window(struct by_window *by, const struct part_report *report)
{
	uint64_t place =
		((uint64_t)window_of(report->start_ns, by->window_ns) - (uint64_t)by->from_ns) /
		(uint64_t)by->window_ns;
	struct sums *sums;

	if (report->start_ns < by->from_ns || place >= by->windows)
		return; /* of another pass */
	sums = &by->sums[place];
	if (!sums->values)
		sums_init(sums, by->job->view->nodes_count, by->columns);
	sums_add(sums, report, by->columns);
}

static int read_windows(struct by_window *by, struct err *err)
{
	struct part_report report;
	int rc = report_stream_begin(by->job->stream, SEGMENT_ROWS, err);

	while (!rc) {
		int more = report_stream_next(by->job->stream, &report, err);

		if (more <= 0)
			return more;
		add_to_window(by, &report);
	}
	return rc;
}

static int write_windows(struct by_window *by, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < by->windows; i++) {
		struct sums *sums = &by->sums[i];

		if (!rc && sums->report.reports_count)
			rc = sums_write(sums, by->level, by->columns, by->job->writer, err);
		sums_free(sums);
		*sums = (struct sums){ 0 };
	}
	return rc;
}

static uint64_t rows_of_windows(const struct by_window *by)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < by->windows; i++)
		rows += by->sums[i].nodes_count;
	return rows;
}

static int write_by_window(const struct rollup_job *job, enum segment_level level,
			   int64_t window_ns, uint64_t rows_max, struct err *err)
{
	struct by_window by = { .job = job,
				.level = level,
				.window_ns = window_ns,
				.columns = job->view->groups[0].column_count };
	size_t bytes = (size_t)job->view->nodes_count * (by.columns * sizeof(int64_t) + 1);
	int64_t from_ns = window_of(job->count->first_ns, window_ns);
	uint64_t windows =
		((uint64_t)window_of(job->count->last_ns, window_ns) - (uint64_t)from_ns) /
			(uint64_t)window_ns +
		1;
	int rc = 0;

	by.windows = ROLLUP_BYTES_MAX / bytes ? ROLLUP_BYTES_MAX / bytes : 1;
	by.windows = by.windows < windows ? by.windows : windows;
	assert(windows && by.windows);
	by.sums = mem_new_array(struct sums, by.windows);
	for (uint64_t done = 0; !rc && done < windows; done += by.windows) {
		by.from_ns = from_ns + (int64_t)done * window_ns;
		rc = read_windows(&by, err);
		if (!rc && windows <= by.windows && rows_of_windows(&by) > rows_max)
			break; /* not worth it */
		if (!rc)
			rc = write_windows(&by, err);
	}
	for (size_t i = 0; i < by.windows; i++)
		sums_free(&by.sums[i]);
	free(by.sums);
	return rc;
}

/*
 * Ten minutes. A day has 144 of them, too many for a counter per stack and window: the sums of the
 * series are kept as lists of rows, window by window, and each window is summed at the end.
 */

struct ten {
	uint32_t *nodes;
	int64_t *values;
	size_t count, nodes_capacity, values_count, values_capacity;
	struct part_report span; /* of the reports, without rows */
};

struct tens {
	const struct rollup_job *job;
	int64_t first_ns;  /* of all windows */
	uint64_t from, to; /* those whose rows are kept in this pass */
	struct ten *kept;  /* [window - from] */
	bool by_series;	   /* in this pass, sums of series are written */
	uint32_t columns;
	struct sums sums; /* of a series in a window: its reports come one after the other */
	int64_t at_ns;
};

static void keep_ten(struct ten *ten, const struct part_report *report, uint32_t columns)
{
	add_span(&ten->span, report);
	for (uint32_t i = 0; i < report->row_count; i++) {
		mem_grow(ten->nodes, ten->count, ten->nodes_capacity);
		ten->nodes[ten->count++] = report->nodes[i];
		for (uint32_t c = 0; c < columns; c++) {
			mem_grow(ten->values, ten->values_count, ten->values_capacity);
			ten->values[ten->values_count++] = report->values[(size_t)i * columns + c];
		}
	}
}

/* A series has no more reports in the window that was summed. */
static int end_ten(struct tens *tens, struct err *err)
{
	struct part_report report = sums_take(&tens->sums, tens->columns);
	uint64_t window = ((uint64_t)tens->at_ns - (uint64_t)tens->first_ns) / ROLLUP_TEN_NS;
	int rc = 0;

	if (window >= tens->from && window < tens->to)
		keep_ten(&tens->kept[window - tens->from], &report, tens->columns);
	if (tens->by_series)
		rc = part_writer_report(tens->job->writer, SEGMENT_TEN_SERIES, &report, err);
	free((void *)(uintptr_t)report.values);
	return rc;
}

static int read_tens(struct tens *tens, struct err *err)
{
	struct part_report report, *sum = &tens->sums.report;
	int rc = report_stream_begin(tens->job->stream, SEGMENT_ROWS, err);

	while (!rc) {
		int more = report_stream_next(tens->job->stream, &report, err);
		int64_t at_ns;

		if (more <= 0) {
			rc = more;
			break;
		}
		at_ns = window_of(report.start_ns, ROLLUP_TEN_NS);
		if (sum->reports_count && (sum->series != report.series || tens->at_ns != at_ns))
			rc = end_ten(tens, err);
		tens->at_ns = at_ns;
		sum->series = report.series;
		sums_add(&tens->sums, &report, tens->columns);
	}
	return rc || !sum->reports_count ? rc : end_ten(tens, err);
}

static void sum_ten(struct tens *tens, const struct ten *ten)
{
	struct part_report rows = ten->span;

	rows.series = 0;
	rows.row_count = (uint32_t)ten->count;
	rows.nodes = ten->nodes;
	rows.values = ten->values;
	sums_add(&tens->sums, &rows, tens->columns);
}

/* How many rows the windows have together, each stack once in each. */
static uint64_t rows_of_tens(struct tens *tens)
{
	uint64_t rows = 0;

	for (uint64_t i = 0; i < tens->to - tens->from; i++) {
		if (!tens->kept[i].span.reports_count)
			continue;
		sum_ten(tens, &tens->kept[i]);
		rows += tens->sums.nodes_count;
		free((void *)(uintptr_t)sums_take(&tens->sums, tens->columns).values);
	}
	return rows;
}

static int write_kept_tens(struct tens *tens, struct err *err)
{
	int rc = 0;

	for (uint64_t i = 0; !rc && i < tens->to - tens->from; i++) {
		if (!tens->kept[i].span.reports_count)
			continue;
		sum_ten(tens, &tens->kept[i]);
		rc = sums_write(&tens->sums, SEGMENT_TEN_ALL, tens->columns, tens->job->writer,
				err);
	}
	return rc;
}

static void free_kept_tens(struct tens *tens)
{
	for (uint64_t i = 0; i < tens->to - tens->from; i++) {
		free(tens->kept[i].nodes);
		free(tens->kept[i].values);
	}
	free(tens->kept);
	tens->kept = NULL;
}

/*
 * One reading: the sums of series, if they are wanted still, and those windows of all, unless they
 * have more rows (UINT64_MAX: whatever they have).
 */
static int write_tens_pass(struct tens *tens, uint64_t rows_max, struct err *err)
{
	int rc;

	tens->kept = mem_new_array(struct ten, tens->to - tens->from);
	rc = read_tens(tens, err);
	if (!rc && (rows_max == UINT64_MAX || rows_of_tens(tens) <= rows_max))
		rc = write_kept_tens(tens, err);
	free_kept_tens(tens);
	tens->by_series = false;
	return rc;
}

static int write_tens(const struct rollup_job *job, bool by_series, bool of_all, struct err *err)
{
	const struct rollup_count *count = job->count;
	struct tens tens = { .job = job,
			     .first_ns = window_of(count->first_ns, ROLLUP_TEN_NS),
			     .by_series = by_series,
			     .columns = job->view->groups[0].column_count };
	uint64_t windows =
		((uint64_t)window_of(count->last_ns, ROLLUP_TEN_NS) - (uint64_t)tens.first_ns) /
			ROLLUP_TEN_NS +
		1;
	uint64_t bytes = count->rows[TENS] * (sizeof(uint32_t) + tens.columns * sizeof(int64_t));
	uint64_t passes = of_all ? bytes / ROLLUP_BYTES_MAX + 1 : 1;
	uint64_t each = of_all ? windows / passes + 1 : 0;
	uint64_t rows_max = by_series ? count->rows[TENS] / 2 : count->raw_rows / 4;
	int rc = 0;

	sums_init(&tens.sums, job->view->nodes_count, tens.columns);
	for (uint64_t pass = 0; !rc && pass < passes && tens.from <= windows; pass++) {
		tens.to = tens.from + each < windows ? tens.from + each : windows;
		if (!of_all)
			tens.to = tens.from;
		rc = write_tens_pass(&tens, passes == 1 ? rows_max : UINT64_MAX, err);
		tens.from = tens.to;
	}
	sums_free(&tens.sums);
	return rc;
}

static bool only_deltas(const struct tables_view *view)
{
	for (uint32_t i = 0; i < view->groups[0].column_count; i++)
		if (view->columns[view->groups[0].column_first + i].kind != COLUMN_DELTA)
			return false;
	return true;
}

/* Reports that are years apart make no window each: such a partition is read raw. */
#define SPAN_NS_MAX (400 * ROLLUP_DAY_NS)

/* Hours and days. */
static int write_long(const struct rollup_job *job, bool all, struct err *err)
{
	const struct rollup_count *count = job->count;
	uint64_t rows = count->raw_rows; /* that are read without the level */
	int rc = 0;

	if (count->rows[HOURS] <= rows / 2) {
		rc = write_by_series(job, SEGMENT_HOUR_SERIES, ROLLUP_HOUR_NS, err);
		rows = count->rows[HOURS];
	}
	if (!rc && all)
		rc = write_by_window(job, SEGMENT_HOUR_ALL, ROLLUP_HOUR_NS, rows / 2, err);
	if (rc || !job->days)
		return rc;
	if (count->rows[DAYS] <= rows / 2) {
		rc = write_by_series(job, SEGMENT_DAY_SERIES, ROLLUP_DAY_NS, err);
		rows = count->rows[DAYS];
	}
	if (!rc && all)
		rc = write_by_window(job, SEGMENT_DAY_ALL, ROLLUP_DAY_NS, rows / 2, err);
	return rc;
}

int rollup_write(const struct rollup_job *job, struct err *err)
{
	const struct rollup_count *count = job->count;
	bool all = only_deltas(job->view) && job->view->series_count > 1;
	bool by_tens = count->rows[TENS] <= count->raw_rows / 4;
	int64_t span_ns;
	int rc;

	assert(job->view->groups_count == 1);
	if (!count->raw_reports ||
	    __builtin_sub_overflow(count->last_ns, count->first_ns, &span_ns) ||
	    span_ns > SPAN_NS_MAX)
		return 0;
	rc = write_long(job, all, err);
	if (!rc && (by_tens || all)) /* the writer wants levels in their order */
		rc = write_tens(job, by_tens, all, err);
	return rc;
}
