/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums made by ClickHouse: of a query over much, what is fetched grows with the stacks, not with
 * the reports.
 *
 * Series that the query need not tell apart are a class: of one group, without labels on rows, and
 * with the same values of the labels that the query groups by. One of them stands for all; the
 * query's matchers have already decided on each. A sum is exact as a report that stands for several
 * (segment.h): values and durations added up, the number of reports, the first start, the last end.
 * Gauges and series whose rows carry labels are classes of their own.
 *
 * The rows of a report are summed along with one more of a stack that there is not (EXTRA), whose
 * sums are the report's own: so both come from one look at the table, and agree.
 *
 * What would not be exact is asked for anew as reports: sums that could pass 64 bits, deltas that
 * all lasted no time (such say where counting began, which counts less than others: types.h), and
 * rows whose stacks are missing, since then it matters of which report.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/service.h"
#include "server/clickhouse/ch_reading.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define EXTRA "4294967295"

static bool has_names(const struct store_query *query)
{
	return query->names_count || (query->selector && query->selector->matchers_count);
}

static bool any_labelled(const struct ch_catalogue *catalogue)
{
	for (uint32_t i = 0; i < catalogue->count; i++)
		if (catalogue->items[i].labelled)
			return true;
	return false;
}

enum ch_sums_of ch_sums_for(const struct ch_reading *reading)
{
	const struct store_query *query = reading->query;

	switch (query->reads) {
	case STORE_LISTS:
		return CH_SUMS_LISTS;
	case STORE_TOTALS:
		/* Rows may decide on shares of a report. */
		if (!query->step_ns || (has_names(query) && any_labelled(&reading->catalogue)))
			return CH_SUMS_NONE;
		return query->step_ns % HOUR_NS ? CH_SUMS_HEADS : CH_SUMS_TOTALS;
	case STORE_ROWS:
		return query->sums_only || query->step_ns ? CH_SUMS_STACKS : CH_SUMS_NONE;
	}
	return CH_SUMS_NONE;
}

void ch_sums_begin(struct ch_reading *reading)
{
	struct tables_view view = tables_view_of(&reading->catalogue.tables);

	for (uint32_t i = 0; i < reading->catalogue.count; i++) {
		uint32_t columns = tables_series_columns(&view, reading->catalogue.items[i].series);

		reading->columns = columns > reading->columns ? columns : reading->columns;
	}
}

static bool has_kind(const struct tables_view *view, uint32_t series, enum column_kind kind)
{
	const struct group *group = &view->groups[view->series[series].group];

	for (uint32_t i = 0; i < group->column_count; i++)
		if (view->columns[group->column_first + i].kind == (uint32_t)kind)
			return true;
	return false;
}

static bool are_alike(const struct ch_reading *reading, const struct tables_view *view,
		      const struct ch_series *a, const struct ch_series *b)
{
	const struct store_query *query = reading->query;
	uint32_t a_set = view->series[a->series].label_set;
	uint32_t b_set = view->series[b->series].label_set;

	if (view->series[a->series].group != view->series[b->series].group)
		return false;
	for (size_t i = 0; i < query->names_count; i++)
		if (!slice_equal(service_label_value(view, a_set, query->names[i]),
				 service_label_value(view, b_set, query->names[i])))
			return false;
	return true;
}

#define CLASSES_MAX 256u /* each series is compared with one of each class */

/* By item, the item that stands for its class. Returns how many classes there are. */
static uint32_t classify(const struct ch_reading *reading, uint32_t *classes)
{
	const struct ch_catalogue *catalogue = &reading->catalogue;
	struct tables_view view = tables_view_of(&catalogue->tables);
	uint32_t heads[CLASSES_MAX], heads_count = 0, count = 0;

	for (uint32_t i = 0; i < catalogue->count; i++) {
		const struct ch_series *item = &catalogue->items[i];
		uint32_t at = 0;

		classes[i] = i;
		if (!reading->query->by_series && !item->labelled &&
		    !has_kind(&view, item->series, COLUMN_GAUGE)) {
			while (at < heads_count &&
			       !are_alike(reading, &view, item, &catalogue->items[heads[at]]))
				at++;
			if (at < heads_count)
				classes[i] = heads[at];
			else if (heads_count < CLASSES_MAX)
				heads[heads_count++] = i;
		}
		count += classes[i] == i;
	}
	return count;
}

/* What rows are told apart by, besides dictionary and stack: a constant key costs as any other. */
struct sum_keys {
	uint32_t *classes; /* by item */
	bool by_item;	   /* too many classes to say which, or all different */
	bool by_class, by_step, by_labels;
};

static struct sum_keys keys_of(const struct ch_reading *reading)
{
	uint32_t count = reading->catalogue.count;
	struct sum_keys keys = { .classes = mem_new_array(uint32_t, count),
				 .by_step = reading->query->step_ns != 0,
				 .by_labels = any_labelled(&reading->catalogue) };
	uint32_t classes_count = classify(reading, keys.classes);

	keys.by_class = classes_count > 1;
	keys.by_item = keys.by_class && (count > CH_IDS_MAX || classes_count == count);
	return keys;
}

static void add_first_id(const struct ch_reading *reading, struct strbuf *sql)
{
	strbuf_addf(sql, "toUInt64(%llu)", (unsigned long long)reading->catalogue.items[0].id);
}

/* The series that stands for a row's class. */
static void add_class(const struct ch_reading *reading, const struct sum_keys *keys,
		      struct strbuf *sql)
{
	const struct ch_series *items = reading->catalogue.items;
	uint32_t count = reading->catalogue.count;

	if (keys->by_item) {
		strbuf_add_text(sql, "series");
		return;
	}
	if (!keys->by_class) {
		add_first_id(reading, sql);
		return;
	}
	strbuf_add_text(sql, "transform(series, [");
	for (uint32_t i = 0; i < count; i++)
		strbuf_addf(sql, "%stoUInt64(%llu)", i ? "," : "", (unsigned long long)items[i].id);
	strbuf_add_text(sql, "], [");
	for (uint32_t i = 0; i < count; i++)
		strbuf_addf(sql, "%stoUInt64(%llu)", i ? "," : "",
			    (unsigned long long)items[keys->classes[i]].id);
	strbuf_add_text(sql, "], toUInt64(0))");
}

/* " AS a, .. AS d": a report's times, its class and step. */
static void add_report(const struct ch_reading *reading, const struct sum_keys *keys,
		       struct strbuf *sql)
{
	strbuf_add_text(sql, "SELECT ");
	add_class(reading, keys, sql);
	strbuf_add_text(sql, " AS c, toUnixTimestamp64Nano(start) AS a, a + duration AS b, "
			     "duration AS d, arrayMax(arrayMap(x -> abs(x), totals)) AS m");
	if (keys->by_step)
		strbuf_addf(sql, ", intDiv(a, %lld) AS t", (long long)reading->query->step_ns);
}

static void add_from(const struct ch_reading *reading, struct strbuf *sql)
{
	strbuf_add_text(sql, " FROM firn_report FINAL");
	ch_add_where(sql, &reading->wanted);
	ch_add_services(reading, sql);
	ch_add_series(reading, sql);
}

static void add_each(struct strbuf *sql, uint32_t columns, const char *before, const char *after)
{
	for (uint32_t i = 0; i < columns; i++)
		strbuf_addf(sql, ", %s%u%s", before, i, after);
}

/* "c, t, dict, st, ls": what sums are told apart by; `inside` also by what rows of a report are. */
static void add_keys(const struct sum_keys *keys, bool inside, struct strbuf *sql)
{
	strbuf_addf(sql, "%s%sdict%s%s", keys->by_class ? "c, " : "", keys->by_step ? "t, " : "",
		    inside ? ", st" : "", inside && keys->by_labels ? ", ls" : "");
}

/* Rows of reports, with the one more. */
static void add_joined(const struct ch_reading *reading, const struct sum_keys *keys,
		       uint32_t columns, struct strbuf *sql)
{
	strbuf_add_text(sql, " FROM (");
	add_report(reading, keys, sql);
	strbuf_add_text(sql, ", dict, length(stacks) AS z, arrayPushBack(stacks, toUInt32(" EXTRA
			     ")) AS sx");
	if (keys->by_labels)
		strbuf_add_text(sql, ", arrayResize(lsets, z + 1, toUInt32(0)) AS lx");
	for (uint32_t i = 0; i < columns; i++)
		strbuf_addf(sql,
			    ", arrayResize(arraySlice(vals, 1 + %u * z, z), z + 1, toInt64(0)) "
			    "AS x%u",
			    i, i);
	add_from(reading, sql);
	strbuf_addf(sql, ") ARRAY JOIN sx AS st%s", keys->by_labels ? ", lx AS ls" : "");
	for (uint32_t i = 0; i < columns; i++)
		strbuf_addf(sql, ", x%u AS v%u", i, i);
}

static void add_stacks(const struct ch_reading *reading, uint32_t columns, struct strbuf *sql)
{
	struct sum_keys keys = keys_of(reading);

	strbuf_add_text(sql, "SELECT ");
	if (keys.by_class)
		strbuf_add_text(sql, "c");
	else
		add_first_id(reading, sql);
	strbuf_addf(sql,
		    ", dict, minIf(lo, st = " EXTRA "), maxIf(hi, st = " EXTRA
		    "), sumIf(du, st = " EXTRA "), maxIf(lg, st = " EXTRA "), sumIf(n, st = " EXTRA
		    "), maxIf(mo, st = " EXTRA "), groupArrayIf(tuple(st, %s",
		    keys.by_labels ? "ls" : "toUInt32(0)");
	add_each(sql, columns, "s", "");
	strbuf_add_text(sql, "), st != " EXTRA ") FROM (SELECT ");
	add_keys(&keys, true, sql);
	strbuf_add_text(sql, ", min(a) AS lo, max(b) AS hi, sum(d) AS du, max(d) AS lg, "
			     "count() AS n, max(m) AS mo");
	for (uint32_t i = 0; i < columns; i++)
		strbuf_addf(sql, ", sum(v%u) AS s%u", i, i);
	add_joined(reading, &keys, columns, sql);
	strbuf_add_text(sql, " GROUP BY ");
	add_keys(&keys, true, sql);
	strbuf_add_text(sql, ") GROUP BY ");
	add_keys(&keys, false, sql);
	free(keys.classes);
}

static void add_heads(const struct ch_reading *reading, bool summed, uint32_t columns,
		      struct strbuf *sql)
{
	struct sum_keys keys = keys_of(reading);

	strbuf_addf(sql,
		    summed ? "SELECT c, toUInt64(0), min(a), max(b), sum(d), max(d), count(), "
			     "max(m), [tuple(toUInt32(0), toUInt32(0)"
			   : "SELECT series, toUInt64(0), a, b, d, d, toUInt64(1), toUInt64(m), "
			     "[tuple(toUInt32(0), toUInt32(0)");
	for (uint32_t i = 1; i <= columns; i++)
		strbuf_addf(sql, summed ? ", sum(totals[%u])" : ", totals[%u]", i);
	strbuf_add_text(sql, ")] FROM (");
	add_report(reading, &keys, sql);
	strbuf_add_text(sql, ", series, totals");
	add_from(reading, sql);
	strbuf_add_text(sql, summed ? ") GROUP BY c, t" : ") ORDER BY series, a");
	free(keys.classes);
}

/* The empty set for a report without labels; none for a report without rows. */
static void add_lists(const struct ch_reading *reading, uint32_t columns, struct strbuf *sql)
{
	bool labelled = any_labelled(&reading->catalogue);

	strbuf_addf(sql,
		    "SELECT series, %s, max(a), max(a), sum(d), max(d), toUInt64(1), toUInt64(0), ",
		    labelled ? "dict" : "toUInt64(0) AS dict");
	strbuf_addf(sql, "arrayMap(l -> tuple(toUInt32(0), l");
	for (uint32_t i = 0; i < columns; i++)
		strbuf_add_text(sql, ", toInt64(0)");
	strbuf_add_text(sql, labelled ? "), groupUniqArrayArray(multiIf(notEmpty(lsets), lsets, "
					"empty(stacks), emptyArrayUInt32(), [toUInt32(0)])))"
				      : "), [toUInt32(0)])");
	strbuf_addf(sql, " FROM (SELECT series, toUnixTimestamp64Nano(start) AS a, duration AS d%s",
		    labelled ? ", dict, lsets, stacks" : "");
	add_from(reading, sql);
	strbuf_add_text(sql, labelled ? ") GROUP BY series, dict" : ") GROUP BY series");
}

/* A row of the answer. */
struct sum {
	uint64_t series, dict, reports, most;
	int64_t first_ns, end_ns, duration_ns, longest_ns;
	uint32_t rows;
	struct slice bytes; /* of the rows: stack, label set, values */
};

static size_t row_bytes(uint32_t columns)
{
	return 2 * sizeof(uint32_t) + columns * sizeof(int64_t);
}

static bool take_sum(struct byte_reader *in, uint32_t columns, struct sum *ret)
{
	ret->series = byte_reader_u64(in);
	ret->dict = byte_reader_u64(in);
	ret->first_ns = (int64_t)byte_reader_u64(in);
	ret->end_ns = (int64_t)byte_reader_u64(in);
	ret->duration_ns = (int64_t)byte_reader_u64(in);
	ret->longest_ns = (int64_t)byte_reader_u64(in);
	ret->reports = byte_reader_u64(in);
	ret->most = byte_reader_u64(in);
	ret->bytes = ch_take_array(in, row_bytes(columns), &ret->rows);
	return !in->failed && ret->reports && ret->first_ns <= ret->end_ns;
}

static int name_rows(struct ch_reading *reading, const struct sum *sum, uint32_t columns,
		     struct err *err)
{
	struct ch_read_dict *dict = ch_add_dict(reading, sum->dict);

	for (uint32_t i = 0; i < sum->rows; i++) {
		struct slice row = slice_tail(sum->bytes, i * row_bytes(columns));

		ch_name(reading, dict, ch_u32_at(row, 0), ch_u32_at(row, 1));
	}
	return ch_pay(reading, reading->reports.len, err);
}

int ch_find_sums_dicts(struct ch_reading *reading, struct err *err)
{
	struct byte_reader in = byte_reader_of(strbuf_slice(&reading->reports));
	uint32_t columns = reading->columns;
	struct sum sum;
	int rc = 0;

	while (!rc && byte_reader_left(&in)) {
		if (!take_sum(&in, columns, &sum))
			return ch_malformed("firn_report", err);
		if (sum.dict && ch_catalogue_find(&reading->catalogue, sum.series))
			rc = name_rows(reading, &sum, columns, err);
	}
	return rc;
}

/* False: the dictionary lacks what the rows name. */
static bool translate_rows(struct ch_reading *reading, const struct sum *sum, uint32_t columns)
{
	static const struct ch_read_dict none;
	const struct ch_read_dict *dict = sum->dict ? ch_find_dict(reading, sum->dict) : &none;
	size_t stride = row_bytes(columns);

	assert(dict);
	reading->rows =
		ch_scratch(reading->rows, sum->rows, &reading->rows_capacity, sizeof(struct row));
	for (uint32_t i = 0; i < sum->rows; i++) {
		struct slice row = slice_tail(sum->bytes, i * stride);
		uint32_t stack = ch_here(&dict->stacks, ch_u32_at(row, 0));
		uint32_t labels = ch_here(&dict->label_sets, ch_u32_at(row, 1));

		if (!stack || !labels)
			return false;
		reading->rows[i] = (struct row){ stack - 1, labels - 1 };
	}
	return true;
}

/* The answer has room for the most columns; this series has the first `own` of them. */
static void take_values(struct ch_reading *reading, const struct sum *sum, uint32_t columns,
			uint32_t own)
{
	size_t stride = row_bytes(columns);

	reading->values = ch_scratch(reading->values, (size_t)sum->rows * own,
				     &reading->values_capacity, sizeof(int64_t));
	for (uint32_t i = 0; i < sum->rows; i++)
		if (own)
			memcpy(&reading->values[(size_t)i * own],
			       sum->bytes.data + i * stride + 2 * sizeof(uint32_t),
			       own * sizeof(int64_t));
}

static bool is_exact(const struct ch_reading *reading, const struct sum *sum,
		     const struct ch_series *item)
{
	bool deltas = has_kind(&reading->series_copy.from, item->series, COLUMN_DELTA);
	uint64_t all;

	if (sum->reports == 1)
		return true;
	if (sum->reports > UINT32_MAX || (deltas && sum->longest_ns <= 0))
		return false;
	return !__builtin_mul_overflow(sum->most, sum->reports, &all) && all <= INT64_MAX;
}

static void note_sum(struct ch_reading *reading, uint32_t report, const struct sum *sum)
{
	struct ch_pins *pins = reading->pins;
	uint32_t reports = sum->reports < UINT32_MAX ? (uint32_t)sum->reports : UINT32_MAX;

	if (report >= reading->sums_capacity) {
		reading->sums_capacity = 2 * (size_t)report + 64;
		pins->sums = mem_realloc(pins->sums, reading->sums_capacity, sizeof(*pins->sums));
	}
	pins->sums[report] = (struct segment_sum){ reports, sum->end_ns };
}

static int add_sum(struct ch_reading *reading, const struct sum *sum, bool *ret_raw,
		   struct err *err)
{
	const struct ch_series *item = ch_catalogue_find(&reading->catalogue, sum->series);
	uint32_t columns = reading->columns, own, series, report;

	if (!item)
		return 0;
	*ret_raw = !is_exact(reading, sum, item) || !translate_rows(reading, sum, columns);
	if (*ret_raw)
		return 0;
	own = tables_series_columns(&reading->series_copy.from, item->series);
	take_values(reading, sum, columns, own);
	series = tables_copy_series(&reading->series_copy, item->series);
	if (series == TABLES_FULL)
		return ch_too_large(reading, err);
	report = tables_report_begin(reading->tables, series, sum->first_ns, sum->duration_ns, 0);
	if (report == TABLES_FULL ||
	    !tables_rows(reading->tables, reading->rows, sum->rows, reading->values))
		return ch_too_large(reading, err);
	note_sum(reading, report, sum);
	return 0;
}

int ch_take_sums(struct ch_reading *reading, bool *ret_raw, struct err *err)
{
	struct byte_reader in = byte_reader_of(strbuf_slice(&reading->reports));
	struct tables_view view = tables_view_of(&reading->catalogue.tables);
	uint32_t columns = reading->columns;
	uint64_t rows = 0;
	struct sum sum;
	int rc = 0;

	*ret_raw = false;
	rc = ch_translate_dicts(reading, err);
	tables_copy_begin(&reading->series_copy, reading->tables, &view);
	while (!rc && !*ret_raw && byte_reader_left(&in)) {
		bool is_whole = take_sum(&in, columns, &sum);

		assert(is_whole); /* ch_find_sums_dicts has read them all */
		rc = add_sum(reading, &sum, ret_raw, err);
		rows += sum.rows + 1;
		if (!rc && rows >= CH_ROWS_BETWEEN_CHECKS) {
			rows = 0;
			rc = ch_pay(reading,
				    reading->reports.len +
					    reading->sums_capacity * sizeof(struct segment_sum),
				    err);
		}
	}
	tables_copy_end(&reading->series_copy);
	return rc;
}

void ch_sums_statement(const struct ch_reading *reading, enum ch_sums_of of, struct strbuf *sql)
{
	uint32_t columns = reading->columns;

	switch (of) {
	case CH_SUMS_STACKS:
		add_stacks(reading, columns, sql);
		return;
	case CH_SUMS_TOTALS:
	case CH_SUMS_HEADS:
		add_heads(reading, of == CH_SUMS_TOTALS, columns, sql);
		return;
	case CH_SUMS_LISTS:
		add_lists(reading, columns, sql);
		return;
	case CH_SUMS_NONE:
		break;
	}
	assert(!"a statement for sums of nothing");
}

int ch_read_sums(struct ch_reading *reading, enum ch_sums_of of, bool *ret_raw, struct err *err)
{
	struct strbuf sql = { 0 };
	int rc;

	*ret_raw = false;
	ch_sums_begin(reading);
	ch_sums_statement(reading, of, &sql);
	rc = ch_store_ask(reading->store, reading->query, &sql, &reading->reports, err);
	strbuf_free(&sql);
	if (!rc)
		rc = ch_pay(reading, reading->reports.len, err);
	if (!rc)
		rc = ch_find_sums_dicts(reading, err);
	if (!rc)
		rc = ch_read_dicts(reading, err);
	return rc ? rc : ch_take_sums(reading, ret_raw, err);
}
