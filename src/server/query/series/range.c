/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range - time series: one event per report and line, sorted by (line, bucket, series), folded.
 *
 * A report's value is its total; only series whose labels leave it to their rows whether they
 * count, or on which line, are summed row by row. There a report without a row for some line is
 * no event on that line. With `spread`, a report is an event in each step that it lasts. Where
 * samples count at their own times, range_times sums up steps.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#include "server/query/select/mean.h"
#include "server/query/query.h"
#include "server/query/series/range_cells.h"
#include "server/query/series/range_times.h"
#include "server/query/select/select.h"

#define STEP_NS_MIN CLOCK_NS_PER_MS

/* Neighbouring reports of one series in one bucket and line are one event. */
struct event {
	uint32_t line;
	uint32_t series;
	uint64_t reports;
	int64_t bucket_ns; /* its start */
	mean_wide value;   /* their sum */
};

/* Sums of one report per group, for series that are read row by row. */
struct group_sums {
	int64_t *values;
	uint8_t *used;
	uint32_t *touched;
	size_t capacity, touched_count;
};

struct ranging {
	struct selection *selection;
	const struct query_range_params *params;
	bool line_per_series;
	struct event *events;
	size_t events_count, events_capacity;
	uint32_t *last_events; /* by series: index + 1 */
	struct group_sums sums;
	struct err *err;
};

static int64_t bucket_of(int64_t at_ns, int64_t step_ns)
{
	int64_t rest = at_ns % step_ns;

	return at_ns - (rest < 0 ? rest + step_ns : rest);
}

/* The last event of a series, when the report falls into its bucket and line. */
static struct event *open_event(const struct ranging *ranging, uint32_t series, uint32_t line,
				int64_t bucket_ns)
{
	uint32_t last = ranging->last_events[series];
	struct event *event;

	assert(series < ranging->selection->series_count);
	if (!last)
		return NULL;
	event = &ranging->events[last - 1];
	return event->line == line && event->bucket_ns == bucket_ns ? event : NULL;
}

/* The reports of one series in one bucket; `what` is told by value and number. */
static int add_event(struct ranging *ranging, uint32_t series, uint32_t group,
		     const struct select_bucket *what)
{
	struct selection *selection = ranging->selection;
	uint32_t line = ranging->line_per_series ? series : group;
	struct event *event = open_event(ranging, series, line, what->at_ns);
	mean_wide value = what->total;

	assert(ranging->events_count <= ranging->events_capacity);
	assert(series < ranging->selection->series_count);
	if (selection->by_period)
		value *= selection->series[series].period;
	if (!event) {
		if (ranging->events_count == UINT32_MAX ||
		    !WORK_GROW(&selection->work->arena, ranging->events, ranging->events_count,
			       ranging->events_capacity))
			return work_over_budget(selection->work, ranging->err);
		event = &ranging->events[ranging->events_count++];
		*event = (struct event){ .line = line, .series = series, .bucket_ns = what->at_ns };
		ranging->last_events[series] = (uint32_t)ranging->events_count;
	}
	event->value = mean_add(event->value, value);
	event->reports += what->reports;
	return 0;
}

static bool room_for_group(struct ranging *ranging, uint32_t group)
{
	struct arena *arena = &ranging->selection->work->arena;
	struct group_sums *sums = &ranging->sums;

	while (sums->capacity <= group) {
		size_t capacities[3] = { sums->capacity, sums->capacity, sums->capacity };

		sums->values = work_grown(arena, sums->values, sizeof(*sums->values),
					  sums->capacity, &capacities[0]);
		sums->used = work_grown(arena, sums->used, sizeof(*sums->used), sums->capacity,
					&capacities[1]);
		sums->touched = work_grown(arena, sums->touched, sizeof(*sums->touched),
					   sums->capacity, &capacities[2]);
		if (!sums->values || !sums->used || !sums->touched)
			return false;
		sums->capacity = capacities[0];
	}
	return true;
}

static int touch_group(struct ranging *ranging, uint32_t group)
{
	struct group_sums *sums = &ranging->sums;

	assert(ranging->sums.touched_count <= ranging->sums.capacity);
	if (!room_for_group(ranging, group))
		return work_over_budget(ranging->selection->work, ranging->err);
	if (!sums->used[group]) {
		sums->used[group] = true;
		sums->values[group] = 0;
		sums->touched[sums->touched_count++] = group;
	}
	return 0;
}

/* In the step in which it starts, or by the shares of all that it lasts. */
static int add_report(struct ranging *ranging, uint32_t series, uint32_t group,
		      const struct segment_report *report, int64_t value)
{
	struct select_shares shares = { .value = value,
					.start_ns = report->start_ns,
					.step_ns = ranging->params->step_ns };
	uint64_t reports = report->reports_count;
	int rc = 0;

	assert(series < ranging->selection->series_count);
	if (select_is_spread(ranging->selection))
		shares.duration_ns = report->duration_ns;
	while (!rc && select_shares_next(&shares)) {
		rc = add_event(ranging, series, group,
			       &(struct select_bucket){ .at_ns = shares.at_ns,
							.reports = reports,
							.total = shares.share });
		reports = 0;
	}
	return rc;
}

static int sum_rows(struct ranging *ranging, struct select_segment *in,
		    const struct segment_block *block, const struct segment_report *report)
{
	const struct select_series *series = &in->series[report->series];
	uint64_t stride = block->value_stride ? block->value_stride
					      : tables_series_columns(in->view, report->series);
	const int64_t *values = NULL;
	int rc = 0;

	assert(report->series < in->view->series_count);
	if (block->values)
		values =
			&block->values[report->value_first + series->column * block->column_stride];
	ranging->sums.touched_count = 0;
	if (series->group != SELECT_NONE)
		rc = touch_group(ranging, series->group);
	for (uint32_t i = 0; !rc && i < report->row_count; i++) {
		uint32_t set = 0, group;

		if (block->label_sets)
			set = block->label_sets[(report->row_first + i) * block->row_stride];
		rc = select_row(ranging->selection, in, series, set, &group, ranging->err);
		if (rc || group == SELECT_NONE)
			continue;
		rc = touch_group(ranging, group);
		if (!rc)
			ranging->sums.values[group] = work_add(ranging->sums.values[group],
							       values ? values[i * stride] : 1);
	}
	for (size_t i = 0; i < ranging->sums.touched_count; i++) {
		uint32_t group = ranging->sums.touched[i];

		ranging->sums.used[group] = false;
		if (!rc)
			rc = add_report(ranging, series->id, group, report,
					ranging->sums.values[group]);
	}
	return rc;
}

/* Series that are read row by row. */
static int collect_block(struct ranging *ranging, struct select_segment *in, uint32_t number)
{
	struct work *work = ranging->selection->work;
	struct segment_block block;
	int rc = work_read(work, in->segment, number, SEGMENT_ROWS, &block, ranging->err);

	assert(number < in->segment->blocks_count);
	for (uint32_t i = 0; !rc && i < block.reports_count; i++) {
		const struct segment_report *report = &block.reports[i];

		if (!select_takes(ranging->selection, in, report) ||
		    select_whole(&in->series[report->series]))
			continue;
		rc = sum_rows(ranging, in, &block, report);
		if (!rc)
			rc = work_tick(work, report->row_count + 1, ranging->err);
	}
	return rc;
}

/* All other series, whose totals are known. */
static int collect_buckets(struct ranging *ranging, const struct select_segment *in)
{
	assert(in->buckets || !in->buckets_count);
	for (size_t i = 0; i < in->buckets_count; i++) {
		const struct select_series *series = &in->series[in->buckets[i].series];
		int rc = work_tick(ranging->selection->work, 1, ranging->err);

		if (!rc && series->id != SELECT_NONE && select_whole(series))
			rc = add_event(ranging, series->id, series->group, &in->buckets[i]);
		if (rc)
			return rc;
	}
	return 0;
}

static int add_step(struct ranging *ranging, struct event event)
{
	struct work *work = ranging->selection->work;

	if (!WORK_GROW(&work->arena, ranging->events, ranging->events_count,
		       ranging->events_capacity))
		return work_over_budget(work, ranging->err);
	ranging->events[ranging->events_count++] = event;
	return 0;
}

static int add_cells(struct ranging *ranging, const struct range_cells *cells)
{
	int rc = 0;

	assert(cells->list || !cells->lines);
	for (size_t i = 0; !rc && i < cells->lines * cells->steps; i++)
		if (cells->list[i].is_there)
			rc = add_step(ranging, (struct event){ .line = (uint32_t)(i / cells->steps),
							       .reports = cells->list[i].reports,
							       .bucket_ns = range_cells_at(
								       cells, i % cells->steps),
							       .value = cells->list[i].value });
	return rc;
}

static int collect_by_times(struct ranging *ranging)
{
	const struct query_range_params *params = ranging->params;
	struct range_times times = { .selection = ranging->selection,
				     .line_per_series = ranging->line_per_series,
				     .step_ns = params->step_ns,
				     .err = ranging->err };
	int rc;

	if (params->base.from_ns >= params->base.to_ns)
		return 0;
	times.first_ns = bucket_of(params->base.from_ns, params->step_ns);
	times.steps_count =
		(size_t)((params->base.to_ns - 1 - times.first_ns) / params->step_ns) + 1;
	rc = range_times_collect(&times);
	for (size_t line = 0; !rc && line < times.lines_count; line++) {
		for (size_t i = 0; !rc && times.lines[line] && i < times.steps_count; i++)
			if (times.lines[line][i].reports)
				rc = add_step(ranging,
					      (struct event){
						      .line = (uint32_t)line,
						      .reports = times.lines[line][i].reports,
						      .bucket_ns = times.first_ns +
								   (int64_t)i * params->step_ns,
						      .value = times.lines[line][i].value,
					      });
	}
	return rc;
}

static int collect_events(struct ranging *ranging)
{
	struct selection *selection = ranging->selection;
	struct range_cells cells;
	int rc;

	if (selection->by_times)
		return collect_by_times(ranging);
	rc = range_cells_collect(selection, ranging->line_per_series, ranging->params->step_ns,
				 &cells, ranging->err);
	if (rc || cells.list)
		return rc ? rc : add_cells(ranging, &cells);
	ranging->last_events =
		arena_new_array(&selection->work->arena, uint32_t, selection->series_count);
	if (!ranging->last_events)
		return work_over_budget(selection->work, ranging->err);
	for (size_t v = 0; v < selection->segments_count; v++) {
		struct select_segment *in = &selection->segments[v];

		rc = collect_buckets(ranging, in);
		for (size_t i = 0; !rc && in->by_rows && i < in->blocks_count; i++)
			rc = collect_block(ranging, in, in->blocks[i]);
		if (rc)
			return rc;
	}
	return 0;
}

static int event_order(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->bucket_ns != b->bucket_ns)
		return a->bucket_ns < b->bucket_ns ? -1 : 1;
	return (a->series > b->series) - (a->series < b->series);
}

static bool in_order(const struct event *events, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (event_order(&events[i - 1], &events[i]) > 0)
			return false;
	return true;
}

/*
 * Mostly they are in order, or those of each line are: a part's segments come series by series, and
 * a series' reports by time.
 */
static int sort_events(struct ranging *ranging)
{
	size_t count = ranging->events_count, lines = 0, *ends;
	struct arena *arena = &ranging->selection->work->arena;
	struct event *sorted;

	assert(ranging->events || !ranging->events_count);
	if (in_order(ranging->events, count))
		return 0;
	for (size_t i = 0; i < count; i++)
		lines = ranging->events[i].line < lines ? lines
							: (size_t)ranging->events[i].line + 1;
	ends = arena_new_array(arena, size_t, lines + 1);
	sorted = arena_new_array(arena, struct event, count);
	if (!ends || !sorted)
		return work_over_budget(ranging->selection->work, ranging->err);
	for (size_t i = 0; i < count; i++)
		ends[ranging->events[i].line + 1]++;
	for (size_t line = 0; line < lines; line++)
		ends[line + 1] += ends[line];
	for (size_t i = 0; i < count; i++)
		sorted[ends[ranging->events[i].line]++] = ranging->events[i];
	for (size_t line = 0; line < lines; line++) {
		size_t first = line ? ends[line - 1] : 0;

		if (!in_order(sorted + first, ends[line] - first))
			qsort(sorted + first, ends[line] - first, sizeof(*sorted), event_order);
	}
	ranging->events = sorted;
	return 0;
}

/* The reports of the events of one series from `first` on; *ret_next is behind them. */
static uint32_t count_series(const struct event *events, size_t first, size_t end, size_t *ret_next)
{
	uint64_t reports = 0;
	size_t next = first;

	assert(first < end);
	for (; next < end && events[next].series == events[first].series; next++)
		reports += events[next].reports;
	*ret_next = next;
	return reports < UINT32_MAX ? (uint32_t)reports : UINT32_MAX;
}

/* The sum over series of the mean of each one's reports. */
static int64_t gauge_value(const struct event *events, size_t first, size_t end)
{
	mean_wide numerator = 0;
	int64_t denominator = 1;

	assert(first < end);
	for (size_t at = first, next; at < end; at = next)
		denominator = mean_denominator(denominator, count_series(events, at, end, &next));
	for (size_t at = first, next; at < end; at = next) {
		int64_t weight = mean_weight(denominator, count_series(events, at, end, &next));

		for (size_t i = at; i < next; i++)
			numerator = mean_add(numerator, events[i].value * weight);
	}
	return mean_round(numerator, denominator);
}

/*
 * How long a step is within the range, which the last report may pass. A step that has whole
 * reports is no shorter than one.
 */
static double shown_seconds(const struct ranging *ranging, int64_t bucket_ns)
{
	const struct query_range_params *params = ranging->params;
	const struct selection *selection = ranging->selection;
	int64_t from_ns = bucket_ns > params->base.from_ns ? bucket_ns : params->base.from_ns;
	int64_t to_ns = work_add(bucket_ns, params->step_ns), end_ns = params->base.to_ns;
	int64_t shown_ns;

	if (select_is_spread(selection) && selection->end_ns > end_ns)
		end_ns = selection->end_ns;
	if (to_ns > end_ns)
		to_ns = end_ns;
	shown_ns = to_ns - from_ns;
	if (params->spread && !selection->spread && shown_ns < selection->report_ns)
		shown_ns = selection->report_ns < params->step_ns ? selection->report_ns
								  : params->step_ns;
	return (double)shown_ns / CLOCK_NS_PER_S;
}

static struct query_point point_of(const struct ranging *ranging, size_t first, size_t end)
{
	const struct event *events = ranging->events;
	struct query_point point = { .at_ns = events[first].bucket_ns };
	mean_wide sum = 0;

	assert(first < end && end <= ranging->events_count);
	for (size_t i = first; i < end; i++) {
		sum = mean_add(sum, events[i].value);
		point.reports += (uint32_t)events[i].reports;
	}
	point.sum = mean_round(sum, 1);
	if (!ranging->selection->type.delta) {
		point.value = gauge_value(events, first, end);
		point.per_second = (double)point.value;
		return point;
	}
	point.value = point.sum;
	point.per_second = (double)point.value / shown_seconds(ranging, events[first].bucket_ns);
	return point;
}

static bool label_line(const struct ranging *ranging, uint32_t line, struct arena *arena,
		       struct query_series *into)
{
	const struct selection *selection = ranging->selection;
	const struct query_params *base = selection->params;
	const struct select_totals *series = &selection->series[line];
	const struct label_set *set = NULL;
	size_t count = base->group_by_count;

	if (ranging->line_per_series) {
		set = &series->view->label_sets[series->view->series[series->series].label_set];
		count = set->label_count;
	}
	into->labels = arena_new_array(arena, struct query_label, count);
	if (!into->labels)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct query_label label;

		if (set) {
			const struct label *from = &series->view->labels[set->label_first + i];

			label.name = tables_text(series->view, from->name);
			label.value = tables_text(series->view, from->value);
		} else {
			label.name = base->group_by[i];
			label.value = selection->groups.list[line].values[i];
		}
		if (label.value.len && !slice_starts_with(label.name, SLICE_LITERAL("__")))
			into->labels[into->labels_count++] =
				(struct query_label){ arena_copy(arena, label.name),
						      arena_copy(arena, label.value) };
	}
	return true;
}

static size_t end_of_line(const struct ranging *ranging, size_t first)
{
	size_t next = first;

	assert(first < ranging->events_count);
	while (next < ranging->events_count &&
	       ranging->events[next].line == ranging->events[first].line)
		next++;
	return next;
}

static size_t end_of_bucket(const struct ranging *ranging, size_t first, size_t end)
{
	size_t next = first;

	assert(first < end && end <= ranging->events_count);
	while (next < end && ranging->events[next].bucket_ns == ranging->events[first].bucket_ns)
		next++;
	return next;
}

static int fold_line(struct ranging *ranging, size_t first, size_t end,
		     struct query_series_set *set)
{
	struct query_series *line = &set->series[set->series_count++];
	size_t count = 0;

	assert(first < ranging->events_count);
	for (size_t at = first; at < end; at = end_of_bucket(ranging, at, end))
		count++;
	line->points = arena_new_array(&set->arena, struct query_point, count);
	if (!line->points || !label_line(ranging, ranging->events[first].line, &set->arena, line))
		return work_over_budget(ranging->selection->work, ranging->err);
	for (size_t at = first, next; at < end; at = next) {
		next = end_of_bucket(ranging, at, end);
		line->points[line->points_count++] = point_of(ranging, at, next);
	}
	return work_tick(ranging->selection->work, (uint32_t)(end - first), ranging->err);
}

static int line_order(const void *left, const void *right)
{
	const struct query_series *a = left, *b = right;

	for (size_t i = 0; i < a->labels_count && i < b->labels_count; i++) {
		int order = slice_compare(a->labels[i].name, b->labels[i].name);

		if (!order)
			order = slice_compare(a->labels[i].value, b->labels[i].value);
		if (order)
			return order;
	}
	return (a->labels_count > b->labels_count) - (a->labels_count < b->labels_count);
}

static int fold(struct ranging *ranging, struct query_series_set *set)
{
	size_t lines = 0;
	int rc = sort_events(ranging);

	if (rc)
		return rc;
	for (size_t at = 0; at < ranging->events_count; at = end_of_line(ranging, at))
		lines++;
	if (lines > QUERY_SERIES_MAX)
		return err_set(ranging->err, ERR_LIMIT,
			       "query: %zu time series are more than %d; narrow the matchers, or "
			       "sum by fewer labels",
			       lines, QUERY_SERIES_MAX);
	set->series = arena_new_array(&set->arena, struct query_series, lines);
	if (!set->series)
		return work_over_budget(ranging->selection->work, ranging->err);
	for (size_t at = 0, next; !rc && at < ranging->events_count; at = next) {
		next = end_of_line(ranging, at);
		rc = fold_line(ranging, at, next, set);
	}
	if (set->series_count)
		qsort(set->series, set->series_count, sizeof(*set->series), line_order);
	return rc ? rc : work_check(ranging->selection->work, ranging->err);
}

static int check_params(const struct query_range_params *params, struct err *err)
{
	uint64_t range_ns = (uint64_t)params->base.to_ns - (uint64_t)params->base.from_ns;

	if (!params->base.selector->has_type)
		return err_set(err, ERR_INVALID, "query: the selector names no profile type");
	if (params->base.group_by_count > QUERY_GROUP_BY_MAX)
		return err_set(err, ERR_LIMIT, "query: sum by at most %d labels",
			       QUERY_GROUP_BY_MAX);
	if (params->step_ns < STEP_NS_MIN)
		return err_set(err, ERR_INVALID, "query: a step is at least 1 ms");
	if (params->base.to_ns > params->base.from_ns &&
	    range_ns / (uint64_t)params->step_ns > QUERY_STEPS_MAX)
		return err_set(err, ERR_LIMIT,
			       "query: the range has more than %d steps; take a larger step",
			       QUERY_STEPS_MAX);
	return 0;
}

static int try_series(const struct query_source *source, const struct query_range_params *params,
		      struct query_series_set *ret, struct err *err)
{
	struct query_params base = params->base;
	struct query_series_set set = { .step_ns = params->step_ns };
	struct selection selection;
	struct ranging ranging = { .selection = &selection, .params = params, .err = err };
	struct work work;
	int rc;

	base.at_moment = false;
	if (params->sum_all)
		base.group_by_count = 0;
	ranging.line_per_series = !params->sum_all && !base.group_by_count;
	work_begin(&work, &base.limits);
	arena_init(&set.arena, work.limit_bytes);
	rc = select_make(
		&selection, &work, source, &base,
		(struct select_use){ .step_ns = params->step_ns, .spread = params->spread }, err);
	work_step_done(&work, QUERY_STEP_SELECT);
	if (!rc)
		rc = collect_events(&ranging);
	if (!rc)
		rc = fold(&ranging, &set);
	work_step_done(&work, QUERY_STEP_SUM);
	if (!rc) {
		set.type = profile_type_copy(&selection.type, &set.arena);
		set.period = selection.period;
		set.report_ns = selection.report_ns;
		set.has_times = selection.has_times;
		set.stats = work_stats(&work);
		if (set.arena.over_budget)
			rc = work_over_budget(&work, err);
	}
	work_end(&work);
	if (rc)
		query_series_free(&set);
	else
		*ret = set;
	return rc;
}

int query_series(const struct query_source *source, const struct query_range_params *params,
		 struct query_series_set *ret, struct err *err)
{
	size_t unreadable = 0;
	int rc = check_params(params, err);

	if (rc)
		return rc;
	do {
		rc = try_series(source, params, ret, err);
	} while (work_again(source, rc, &unreadable));
	if (!rc)
		ret->parts_unreadable = unreadable;
	return rc;
}

void query_series_free(struct query_series_set *set)
{
	arena_free(&set->arena);
	*set = (struct query_series_set){ 0 };
}
