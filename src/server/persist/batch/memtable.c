/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariant: the tables are a function of the log: the batches in their order, the times of their
 * receipt, and the ledger that the generation began with. Nothing here looks at a clock or draws a
 * number, so what is replayed after a crash is what was there before, and a retry that comes after
 * it is recognised all the same.
 *
 * A batch has its own ids for strings, frames and stacks. All its stacks are hashed by content
 * first, then looked up together (model/stack_index.h): misses of the cache overlap, where one
 * look-up after the other would wait for each. Only stacks of reports that are taken are copied.
 */
#include "server/persist/batch/memtable.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/archive/compress.h"
#include "server/persist/disk/persist_metrics.h"

#define PAYLOAD_HEADER_BYTES 28u
#define PAYLOAD_ZSTD_LEVEL (-9) /* a third larger than by 1, in half of the time */
#define PAYLOAD_RAW_BYTES_MAX ((uint32_t)1 << 30)

struct memtable *memtable_new(uint64_t generation)
{
	struct memtable *memtable = mem_new(struct memtable);

	tables_init(&memtable->tables);
	memtable->generation = generation;
	memtable->references = 1;
	memtable->min_start_ns = INT64_MAX;
	memtable->max_start_ns = INT64_MIN;
	return memtable;
}

void memtable_check(const struct memtable *memtable)
{
	bool has_reports = memtable->tables.reports.count > 0;

	assert(has_reports == (memtable->min_start_ns <= memtable->max_start_ns));
	assert(memtable->tables.rows.count == 0 || has_reports);
	assert(memtable->damaged_count <= memtable->damaged_capacity);
}

size_t memtable_bytes(const struct memtable *memtable)
{
	return tables_bytes(&memtable->tables) + stack_index_bytes(&memtable->index);
}

bool memtable_rows_may_carry(const struct memtable *memtable, struct slice name)
{
	uint32_t id;

	if (memtable->row_names_count > MEMTABLE_ROW_NAMES)
		return true;
	id = tables_find_string(&memtable->tables, name);
	for (uint32_t i = 0; i < memtable->row_names_count; i++)
		if (memtable->row_names[i] == id)
			return true;
	return false;
}

static void note_row_name(struct memtable *memtable, uint32_t name)
{
	if (memtable->row_names_count > MEMTABLE_ROW_NAMES)
		return;
	for (uint32_t i = 0; i < memtable->row_names_count; i++)
		if (memtable->row_names[i] == name)
			return;
	if (memtable->row_names_count < MEMTABLE_ROW_NAMES)
		memtable->row_names[memtable->row_names_count] = name;
	memtable->row_names_count++;
}

void memtable_end(struct memtable *memtable)
{
	assert(!memtable->ended);
	memtable_check(memtable);
	memtable->ended = true;
	stack_index_free(&memtable->index);
}

void memtable_free(struct memtable *memtable)
{
	stack_index_free(&memtable->index);
	tables_free(&memtable->tables);
	strbuf_free(&memtable->state);
	free(memtable->damaged);
	free(memtable);
}

/* One batch on its way into the memtable. */
struct application {
	struct memtable *memtable;
	struct ledger *ledger;
	const struct tables_view *batch;
	const struct memtable_window *window;
	struct append_result *result;
	struct tables_copy copy;
	struct stack_copier stacks_copier;
	struct identity *series; /* of each, computed on first use */
	bool *series_known;
	struct identity *stacks; /* NULL until a cumulative report needs them */
	struct identity *label_sets;
	bool *row_labels_known; /* by label set: copied for a row */
	const struct memtable_verdict *verdict;
};

static struct identity series_identity(struct application *app, uint32_t series)
{
	assert(series < app->batch->series_count);
	if (!app->series_known[series]) {
		app->series[series] = identity_of_series(app->batch, series);
		app->series_known[series] = true;
	}
	return app->series[series];
}

static const struct group *group_of(const struct tables_view *view, uint32_t series)
{
	return &view->groups[view->series[series].group];
}

static bool is_cumulative(const struct tables_view *view, const struct group *group,
			  uint32_t column)
{
	return view->columns[group->column_first + column].kind == COLUMN_CUMULATIVE;
}

static uint32_t cumulative_columns(const struct tables_view *view, const struct group *group)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < group->column_count; i++)
		count += is_cumulative(view, group, i);
	return count;
}

/*
 * The series in the memtable: its cumulative columns are deltas there. Of a snapshot they are
 * gauges, and alone.
 */
static uint32_t add_series(struct application *app, uint32_t series, bool snapshot)
{
	const struct group *from = group_of(app->batch, series);
	struct column columns[TABLES_COLUMNS_PER_GROUP_MAX];
	struct group group = *from;
	uint32_t id;

	assert(from->column_count <= TABLES_COLUMNS_PER_GROUP_MAX);
	group.name = tables_copy_string(&app->copy, from->name);
	group.period_type = tables_copy_string(&app->copy, from->period_type);
	group.period_unit = tables_copy_string(&app->copy, from->period_unit);
	group.column_count = 0;
	for (uint32_t i = 0; i < from->column_count; i++) {
		struct column *column = &columns[group.column_count];

		if (snapshot && !is_cumulative(app->batch, from, i))
			continue;
		*column = app->batch->columns[from->column_first + i];
		column->sample_type = tables_copy_string(&app->copy, column->sample_type);
		column->sample_unit = tables_copy_string(&app->copy, column->sample_unit);
		if (column->kind == COLUMN_CUMULATIVE)
			column->kind = snapshot ? COLUMN_GAUGE : COLUMN_DELTA;
		group.column_count++;
	}
	id = tables_series(&app->memtable->tables,
			   tables_copy_label_set(&app->copy, app->batch->series[series].label_set),
			   tables_group(&app->memtable->tables, &group, columns));
	assert(id != TABLES_FULL);
	return id;
}

static uint32_t copy_series(struct application *app, uint32_t series)
{
	if (app->copy.series[series] == TABLES_FULL)
		app->copy.series[series] = add_series(app, series, false);
	return app->copy.series[series];
}

static void begin_report(struct application *app, uint32_t series, const struct report *report,
			 int64_t duration_ns)
{
	uint32_t id = tables_report_begin(&app->memtable->tables, series, report->start_ns,
					  duration_ns, report->batch_id);

	assert(id != TABLES_FULL);
	if (report->start_ns < app->memtable->min_start_ns)
		app->memtable->min_start_ns = report->start_ns;
	if (report->start_ns > app->memtable->max_start_ns)
		app->memtable->max_start_ns = report->start_ns;
	assert(app->memtable->min_start_ns <= app->memtable->max_start_ns);
}

static uint32_t copy_row_labels(struct application *app, uint32_t label_set)
{
	const struct label_set *set = &app->batch->label_sets[label_set];
	uint32_t id = tables_copy_label_set(&app->copy, label_set);

	assert(label_set < app->batch->label_sets_count);
	if (app->row_labels_known[label_set])
		return id;
	app->row_labels_known[label_set] = true;
	for (uint32_t i = 0; i < set->label_count; i++)
		note_row_name(app->memtable,
			      tables_copy_string(&app->copy,
						 app->batch->labels[set->label_first + i].name));
	return id;
}

static void store_row(struct application *app, const struct row *row, const int64_t *values)
{
	bool fits = tables_row(&app->memtable->tables,
			       stack_copier_node(&app->stacks_copier, row->stack),
			       copy_row_labels(app, row->label_set), values);

	assert(fits);
	app->result->rows_stored++;
}

static void store_as_is(struct application *app, const struct report *report)
{
	const struct row *from = &app->batch->rows[report->row_first];
	struct row *rows = mem_new_array(struct row, report->row_count);
	bool fits;

	assert(report->row_first + report->row_count <= app->batch->rows_count);
	for (uint32_t i = 0; i < report->row_count; i++)
		rows[i] = (struct row){
			app->copy.nodes[from[i].stack], /* all are there: apply_reports */
			copy_row_labels(app, from[i].label_set),
		};
	begin_report(app, copy_series(app, report->series), report, report->duration_ns);
	app->result->reports_stored++;
	fits = tables_rows(&app->memtable->tables, rows, report->row_count,
			   &app->batch->values[report->value_first]);
	assert(fits);
	tables_copy_moments(&app->copy, report); /* without room for them: without */
	app->result->rows_stored += report->row_count;
	free(rows);
}

/* A row of a report whose values are being converted. */
struct keyed_row {
	struct identity identity; /* of stack and sample labels */
	uint32_t row;		  /* in the report: the first with this identity */
};

static int keyed_row_order(const void *left, const void *right)
{
	const struct keyed_row *a = left, *b = right;
	int order = identity_order(a->identity, b->identity);

	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static void identify_rows(struct application *app, const struct report *report,
			  struct keyed_row *rows)
{
	if (!app->stacks) {
		app->stacks = mem_new_array(struct identity, app->batch->nodes_count);
		identity_of_stacks(app->batch, app->stacks);
		app->label_sets = mem_new_array(struct identity, app->batch->label_sets_count);
		for (uint32_t i = 0; i < app->batch->label_sets_count; i++)
			app->label_sets[i] = identity_of_label_set(app->batch, i);
	}
	for (uint32_t i = 0; i < report->row_count; i++) {
		const struct row *row = &app->batch->rows[report->row_first + i];
		struct identity labels = app->label_sets[row->label_set];

		rows[i].identity = identity_mix(app->stacks[row->stack], labels.low, labels.high);
		rows[i].row = i;
	}
	if (report->row_count)
		qsort(rows, report->row_count, sizeof(*rows), keyed_row_order);
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

/* Sums rows of one identity into `values`; returns how many distinct rows there are. */
static uint32_t merge_rows(const struct application *app, const struct report *report,
			   struct keyed_row *rows, int64_t *values)
{
	uint32_t columns = tables_series_columns(app->batch, report->series);
	uint32_t merged = 0;

	for (uint32_t i = 0; i < report->row_count; i++) {
		const int64_t *from =
			&app->batch->values[report->value_first + (uint64_t)rows[i].row * columns];
		int64_t *into;

		if (!merged || !identity_equal(rows[merged - 1].identity, rows[i].identity))
			rows[merged++] = rows[i];
		into = &values[(size_t)(merged - 1) * columns];
		for (uint32_t column = 0; column < columns; column++)
			into[column] = add_saturating(into[column], from[column]);
	}
	assert(merged <= report->row_count);
	return merged;
}

/* Copies the cumulative columns out of (or back into) the rows' values. */
static void move_cumulative(const struct tables_view *batch, const struct group *group,
			    int64_t *values, int64_t *cumulative, uint32_t rows, bool out)
{
	for (uint32_t i = 0; i < rows; i++) {
		for (uint32_t column = 0; column < group->column_count; column++) {
			int64_t *value = &values[(size_t)i * group->column_count + column];

			if (!is_cumulative(batch, group, column))
				continue;
			if (out)
				*cumulative++ = *value;
			else
				*value = *cumulative++;
		}
	}
}

static bool all_zero(const int64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (values[i])
			return false;
	return true;
}

/*
 * What nothing can be subtracted from, because it is the first of its series, or too old: the
 * amounts since the program started, as a state of that moment. A profile that is sent alone
 * would say nothing otherwise.
 */
static void store_snapshot(struct application *app, const struct report *report,
			   const struct keyed_row *rows, uint32_t rows_count, uint32_t columns,
			   const int64_t *values)
{
	if (all_zero(values, (size_t)rows_count * columns))
		return;
	begin_report(app, add_series(app, report->series, true), report, 0);
	for (uint32_t i = 0; i < rows_count; i++)
		if (!all_zero(&values[(size_t)i * columns], columns))
			store_row(app, &app->batch->rows[report->row_first + rows[i].row],
				  &values[(size_t)i * columns]);
	app->result->snapshots++;
}

static enum baseline_outcome subtract_baseline(struct application *app, const struct report *report,
					       const struct keyed_row *rows, uint32_t rows_count,
					       int64_t *values, int64_t *ret_elapsed_ns)
{
	const struct group *group = group_of(app->batch, report->series);
	uint32_t columns = cumulative_columns(app->batch, group);
	struct identity *identities = mem_new_array(struct identity, rows_count);
	int64_t *cumulative = mem_new_array(int64_t, (size_t)rows_count * columns);
	enum baseline_outcome outcome;

	for (uint32_t i = 0; i < rows_count; i++)
		identities[i] = rows[i].identity;
	move_cumulative(app->batch, group, values, cumulative, rows_count, true);
	outcome = baselines_apply(&app->ledger->baselines, series_identity(app, report->series),
				  report->start_ns, app->window->received_ns, columns, identities,
				  rows_count, cumulative, ret_elapsed_ns);
	/* A first report that says since when it counts began at zero then. */
	if (outcome == BASELINE_LATE || (outcome == BASELINE_FIRST && !report->duration_ns)) {
		store_snapshot(app, report, rows, rows_count, columns, cumulative);
		memset(cumulative, 0, (size_t)rows_count * columns * sizeof(*cumulative));
	}
	move_cumulative(app->batch, group, values, cumulative, rows_count, false);
	free(identities);
	free(cumulative);
	return outcome;
}

/* A report with cumulative columns: what was added since the last report of its series. */
static void store_converted(struct application *app, const struct report *report)
{
	uint32_t columns = tables_series_columns(app->batch, report->series);
	struct keyed_row *rows = mem_new_array(struct keyed_row, report->row_count);
	int64_t *values = mem_new_array(int64_t, (size_t)report->row_count * columns);
	int64_t duration_ns = report->duration_ns;
	enum baseline_outcome outcome;
	uint32_t count;

	assert(app->ledger && columns);
	identify_rows(app, report, rows);
	count = merge_rows(app, report, rows, values);
	outcome = subtract_baseline(app, report, rows, count, values, &duration_ns);
	metric_add(&store_baseline_first, outcome == BASELINE_FIRST);
	metric_add(&store_baseline_late, outcome == BASELINE_LATE);
	begin_report(app, copy_series(app, report->series), report, duration_ns);
	app->result->reports_stored++;
	for (uint32_t i = 0; i < count; i++)
		if (!all_zero(&values[(size_t)i * columns], columns))
			store_row(app, &app->batch->rows[report->row_first + rows[i].row],
				  &values[(size_t)i * columns]);
	free(rows);
	free(values);
}

static void refuse(struct append_result *result, uint32_t report, int64_t start_ns,
		   int64_t bound_ns, const char *rule)
{
	if (!result->refused[0])
		snprintf(result->refused, sizeof(result->refused),
			 "report %u starts at %.3f s since the epoch, %s %.3f s", report,
			 (double)start_ns / 1e9, rule, (double)bound_ns / 1e9);
}

static struct identity report_identity(struct application *app, const struct report *report)
{
	return identity_mix(series_identity(app, report->series), (uint64_t)report->start_ns,
			    report->batch_id);
}

/* What is to become of a report; counts it unless it is stored. */
static enum memtable_outcome judge_report(struct application *app, uint32_t id)
{
	const struct report *report = &app->batch->reports[id];
	const struct memtable_window *window = app->window;

	if (report->start_ns < window->from_ns) {
		app->result->reports_late++;
		refuse(app->result, id, report->start_ns, window->from_ns,
		       "before the oldest that is kept,");
	} else if (report->start_ns > window->to_ns) {
		app->result->reports_future++;
		refuse(app->result, id, report->start_ns, window->to_ns,
		       "after the latest that is believed,");
	} else if (dedupe_seen(&app->ledger->dedupe, report_identity(app, report),
			       window->received_ns)) {
		app->result->reports_duplicate++;
	} else if (cumulative_columns(app->batch, group_of(app->batch, report->series))) {
		return MEMTABLE_CONVERTED;
	} else {
		return MEMTABLE_AS_IS;
	}
	return MEMTABLE_REFUSED;
}

static bool is_stored_as_is(void *context, uint32_t report)
{
	const struct application *app = context;

	return app->verdict->outcomes[report] == MEMTABLE_AS_IS;
}

/* Which rows a converted report keeps is only known then, so its stacks are copied one by one. */
static void store_all(struct application *app)
{
	stack_copier_take(&app->stacks_copier, is_stored_as_is, app);
	for (uint32_t i = 0; i < app->batch->reports_count; i++)
		if (app->verdict->outcomes[i] == MEMTABLE_AS_IS)
			store_as_is(app, &app->batch->reports[i]);
		else if (app->verdict->outcomes[i] == MEMTABLE_CONVERTED)
			store_converted(app, &app->batch->reports[i]);
}

static struct application application_of(struct memtable *memtable, struct ledger *ledger,
					 const struct tables_view *batch,
					 const struct memtable_window *window,
					 struct append_result *result)
{
	return (struct application){
		.memtable = memtable,
		.ledger = ledger,
		.batch = batch,
		.window = window,
		.result = result,
		.series = mem_new_array(struct identity, batch->series_count),
		.series_known = mem_new_array(bool, batch->series_count),
		.row_labels_known = mem_new_array(bool, batch->label_sets_count),
	};
}

static void application_free(struct application *app)
{
	free(app->series);
	free(app->series_known);
	free(app->stacks);
	free(app->label_sets);
	free(app->row_labels_known);
}

struct memtable_verdict memtable_judge(struct memtable *memtable, struct ledger *ledger,
				       const struct tables_view *batch,
				       const struct memtable_window *window,
				       struct append_result *result)
{
	struct application app = application_of(memtable, ledger, batch, window, result);
	struct memtable_verdict verdict = {
		.window = *window,
		.outcomes = mem_new_array(enum memtable_outcome, batch->reports_count),
	};

	if (!memtable->created_ns)
		memtable->created_ns = window->received_ns;
	memtable->newest_receipt_ns = window->received_ns;
	for (uint32_t i = 0; i < batch->reports_count; i++) {
		verdict.outcomes[i] = judge_report(&app, i);
		verdict.needs_ledger |= verdict.outcomes[i] == MEMTABLE_CONVERTED;
	}
	application_free(&app);
	return verdict;
}

void memtable_store(struct memtable *memtable, struct ledger *ledger,
		    const struct tables_view *batch, const struct memtable_verdict *verdict,
		    struct append_result *result)
{
	struct application app = application_of(memtable, ledger, batch, &verdict->window, result);

	assert(verdict->outcomes && (ledger || !verdict->needs_ledger));
	app.verdict = verdict;
	tables_copy_begin(&app.copy, &memtable->tables, batch);
	stack_copier_begin(&app.stacks_copier, &memtable->index, &app.copy);
	store_all(&app);
	stack_copier_end(&app.stacks_copier);
	tables_copy_end(&app.copy);
	application_free(&app);
}

void memtable_apply(struct memtable *memtable, struct ledger *ledger,
		    const struct tables_view *batch, const struct memtable_window *window,
		    struct append_result *ret)
{
	struct append_result result = { 0 };
	struct memtable_verdict verdict = memtable_judge(memtable, ledger, batch, window, &result);

	assert(!memtable->ended && ledger);
	memtable_store(memtable, ledger, batch, &verdict, &result);
	free(verdict.outcomes);
	memtable_check(memtable);
	assert(result.reports_stored + result.reports_duplicate + result.reports_late +
		       result.reports_future ==
	       batch->reports_count);
	*ret = result;
}

void memtable_encode_batch(const struct tables_view *batch, const struct memtable_window *window,
			   struct strbuf *out)
{
	struct strbuf raw = { 0 };

	tables_encode(batch, 0, &raw, NULL);
	assert(raw.len <= PAYLOAD_RAW_BYTES_MAX);
	strbuf_add_u64(out, (uint64_t)window->received_ns);
	strbuf_add_u64(out, (uint64_t)window->from_ns);
	strbuf_add_u64(out, (uint64_t)window->to_ns);
	strbuf_add_u32(out, (uint32_t)raw.len);
	compress_zstd(strbuf_slice(&raw), PAYLOAD_ZSTD_LEVEL, out);
	strbuf_free(&raw);
}

int memtable_decode_batch(struct slice payload, struct memtable_window *ret_window,
			  struct tables_image *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(payload);
	struct memtable_window window;
	struct strbuf raw = { 0 };
	uint32_t raw_bytes;
	int rc;

	window.received_ns = (int64_t)byte_reader_u64(&in);
	window.from_ns = (int64_t)byte_reader_u64(&in);
	window.to_ns = (int64_t)byte_reader_u64(&in);
	raw_bytes = byte_reader_u32(&in);
	if (in.failed || window.received_ns < 0 || window.received_ns == INT64_MAX ||
	    window.from_ns < 0 || raw_bytes > PAYLOAD_RAW_BYTES_MAX)
		return err_set(err, ERR_CORRUPT, "logged batch has a malformed header");
	rc = compress_unzstd(slice_tail(payload, PAYLOAD_HEADER_BYTES), raw_bytes, &raw, err);
	if (rc || raw.len != raw_bytes)
		rc = err_set(err, ERR_CORRUPT, "logged batch does not decompress to %u bytes",
			     raw_bytes);
	else
		rc = tables_decode(strbuf_slice(&raw), raw_bytes, ret, err);
	strbuf_free(&raw);
	if (!rc)
		*ret_window = window;
	return rc;
}
