/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as ClickHouse answers them, made into tables: reports, and sums that stand for several.
 * What is cut or contradicts itself is refused; what an answer lacks is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "put_rows.h"
#include "server/persist/log/tables_check.h"

#define DICT 77u
#define START_NS (1000 * CLOCK_NS_PER_S)

/* main, and main > work, as stacks 1 and 2; as version 1 writes them. */
static void give_stacks(struct ch_reading *reading)
{
	struct strbuf rows = { 0 };
	struct err err;

	put_frame(&rows, DICT, 1, "main");
	put_frame(&rows, DICT, 2, "work");
	assert_int_equal(ch_take_dict_rows(reading, CH_DICT_OF_FRAMES, strbuf_slice(&rows), &err),
			 0);
	strbuf_clear(&rows);
	strbuf_add_u64(&rows, DICT);
	put_numbers(&rows, 2, (const uint32_t[]){ 1, 2 });
	put_numbers(&rows, 2, (const uint32_t[]){ 0, 1 });
	put_numbers(&rows, 2, (const uint32_t[]){ 1, 2 });
	put_stacks(&rows, 0, 0, NULL, 0, 0, NULL);
	assert_int_equal(ch_take_dict_rows(reading, CH_DICT_OF_STACKS, strbuf_slice(&rows), &err),
			 0);
	strbuf_free(&rows);
}

/* The same stacks as version 2 numbers them, but 1 is the longer one; in two flushes. */
static void give_dense_stacks(struct ch_reading *reading, bool with_first_flush)
{
	struct strbuf rows = { 0 };
	struct err err;

	put_frame(&rows, DICT, 1, "main");
	put_frame(&rows, DICT, 2, "work");
	assert_int_equal(ch_take_dict_rows(reading, CH_DICT_OF_FRAMES, strbuf_slice(&rows), &err),
			 0);
	for (int flush = with_first_flush ? 0 : 1; flush < 2; flush++) {
		strbuf_clear(&rows);
		strbuf_add_u64(&rows, DICT);
		put_numbers(&rows, 0, NULL);
		put_numbers(&rows, 0, NULL);
		put_numbers(&rows, flush ? 0 : 2, (const uint32_t[]){ 1, 2 });
		if (flush)
			put_stacks(&rows, 3, 0, NULL, 2, 1, (const uint32_t[]){ 1 });
		else
			put_stacks(&rows, 1, 2, (const uint32_t[]){ 1, 1 }, 1, 1,
				   (const uint32_t[]){ 2 });
		assert_int_equal(
			ch_take_dict_rows(reading, CH_DICT_OF_STACKS, strbuf_slice(&rows), &err),
			0);
	}
	strbuf_free(&rows);
}

static void begin(struct ch_reading *reading, struct budget *memory,
		  const struct store_query *query, const struct strbuf *series)
{
	struct err err;

	ch_reading_init(reading, memory);
	reading->query = query;
	ch_catalogue_init(&reading->catalogue);
	assert_int_equal(ch_catalogue_take(&reading->catalogue, &reading->wanted,
					   strbuf_slice(series), &err),
			 0);
}

static void put_sum(struct strbuf *rows, uint64_t series, uint64_t reports, int64_t longest_ns,
		    uint64_t most, uint32_t stack, int64_t value)
{
	strbuf_add_u64(rows, series);
	strbuf_add_u64(rows, DICT);
	strbuf_add_u64(rows, START_NS);
	strbuf_add_u64(rows, START_NS + 60 * CLOCK_NS_PER_S);
	strbuf_add_u64(rows, 30 * CLOCK_NS_PER_S);
	strbuf_add_u64(rows, (uint64_t)longest_ns);
	strbuf_add_u64(rows, reports);
	strbuf_add_u64(rows, most);
	strbuf_add_varint(rows, 1);
	put_number(rows, stack);
	put_number(rows, 0);
	strbuf_add_u64(rows, (uint64_t)value);
}

static const struct store_query sums = { .sums_only = true };

static int take_sums(struct ch_reading *reading, bool *raw)
{
	struct err err;
	int rc;

	ch_sums_begin(reading);
	rc = ch_find_sums_dicts(reading, &err);
	if (!rc) {
		give_stacks(reading);
		rc = ch_take_sums(reading, raw, &err);
	}
	return rc;
}

static void sums_stand_for_several_reports(void **state)
{
	struct budget memory = { .max_bytes = 64 << 20 };
	struct segment_block block;
	struct segment_buffer buffer = { 0 };
	struct ch_reading reading;
	struct strbuf series = { 0 };
	struct segment segment;
	struct tables_view view;
	bool raw = true;

	(void)state;
	put_series(&series, 5, "a", COLUMN_DELTA, false);
	begin(&reading, &memory, &sums, &series);
	put_sum(&reading.reports, 5, 3, 10 * CLOCK_NS_PER_S, 9, 2, 21);
	assert_int_equal(take_sums(&reading, &raw), 0);
	assert_false(raw);
	view = tables_view_of(reading.tables);
	assert_int_equal(tables_check(&view, NULL), 0);
	segment_of_tables(&segment, &view);
	segment.sums = reading.pins->sums;
	assert_int_equal(segment.blocks_count, 1);
	assert_int_equal(segment_read(&segment, 0, SEGMENT_ROWS, &buffer, &block, NULL), 0);
	assert_int_equal(block.reports_count, 1);
	assert_int_equal(block.reports[0].reports_count, 3);
	assert_int_equal(block.reports[0].start_ns, START_NS);
	assert_int_equal(block.reports[0].end_ns, START_NS + 60 * CLOCK_NS_PER_S);
	assert_int_equal(block.reports[0].duration_ns, 30 * CLOCK_NS_PER_S);
	assert_int_equal(block.totals[block.reports[0].total_first], 21);
	assert_int_equal(view.nodes[view.rows[0].stack].parent, 1);
	segment_buffer_free(&buffer);
	ch_reading_free(&reading);
	assert_int_equal(memory.used_bytes, 0);
	strbuf_free(&series);
}

/* Each time the reports themselves are to be fetched. */
static void what_is_not_exact_is_no_sum(void **state)
{
	static const struct {
		uint64_t reports, most;
		int64_t longest_ns;
		uint32_t stack;
		bool raw;
	} cases[] = {
		{ 2, 9, 1, 2, false },
		{ 2, INT64_MAX, 1, 2, true },		     /* may pass 64 bits */
		{ (uint64_t)UINT32_MAX + 1, 1, 1, 2, true }, /* more than can be counted */
		{ 2, 9, 0, 2, true },			     /* deltas over no time */
		{ 1, INT64_MAX, 0, 2, false },		     /* one stands for itself */
		{ 2, 9, 1, 3, true },			     /* a stack that is missing */
	};
	struct strbuf series = { 0 };

	(void)state;
	put_series(&series, 5, "a", COLUMN_DELTA, false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct budget memory = { .max_bytes = 64 << 20 };
		struct ch_reading reading;
		bool raw;

		begin(&reading, &memory, &sums, &series);
		put_sum(&reading.reports, 5, cases[i].reports, cases[i].longest_ns, cases[i].most,
			cases[i].stack, 4);
		assert_int_equal(take_sums(&reading, &raw), 0);
		assert_int_equal(raw, cases[i].raw);
		ch_reading_again(&reading);
		assert_int_equal(memory.used_bytes, 0);
		assert_int_equal(tables_view_of(reading.tables).reports_count, 0);
		ch_reading_free(&reading);
	}
	strbuf_free(&series);
}

static enum ch_sums_of sums_for(const struct store_query *query, bool labelled)
{
	struct budget memory = { .max_bytes = 64 << 20 };
	struct strbuf series = { 0 };
	struct ch_reading reading;
	enum ch_sums_of of;

	put_series(&series, 5, "a", COLUMN_DELTA, labelled);
	begin(&reading, &memory, query, &series);
	of = ch_sums_for(&reading);
	ch_reading_free(&reading);
	strbuf_free(&series);
	return of;
}

static void queries_are_summed_where_they_allow_it(void **state)
{
	const struct slice name = SLICE_LITERAL("span");
	const int64_t minute = 60 * CLOCK_NS_PER_S, hour = 60 * minute;

	(void)state;
	assert_int_equal(sums_for(&sums, false), CH_SUMS_STACKS);
	assert_int_equal(sums_for(&(struct store_query){ .by_series = true }, false), CH_SUMS_NONE);
	assert_int_equal(sums_for(&(struct store_query){ .step_ns = minute }, false),
			 CH_SUMS_STACKS);
	assert_int_equal(
		sums_for(&(struct store_query){ .step_ns = minute, .reads = STORE_TOTALS }, false),
		CH_SUMS_HEADS);
	assert_int_equal(
		sums_for(&(struct store_query){ .step_ns = hour, .reads = STORE_TOTALS }, true),
		CH_SUMS_TOTALS);
	assert_int_equal(sums_for(&(struct store_query){ .step_ns = hour,
							 .reads = STORE_TOTALS,
							 .names = &name,
							 .names_count = 1 },
				  true),
			 CH_SUMS_NONE);
	assert_int_equal(sums_for(&(struct store_query){ .reads = STORE_LISTS }, true),
			 CH_SUMS_LISTS);
}

/* The statement's parts that say which series stand for which. */
static void series_that_need_not_be_told_apart_are_one(void **state)
{
	const struct slice job = SLICE_LITERAL("job");
	struct budget memory = { .max_bytes = 64 << 20 };
	struct store_query query = sums;
	struct strbuf series = { 0 }, sql = { 0 };
	struct ch_reading reading;

	(void)state;
	put_series(&series, 5, "a", COLUMN_DELTA, false);
	put_series(&series, 6, "b", COLUMN_DELTA, false);
	begin(&reading, &memory, &query, &series);
	ch_sums_begin(&reading);
	ch_sums_statement(&reading, CH_SUMS_STACKS, &sql);
	assert_non_null(strstr(strbuf_text(&sql), "SELECT toUInt64(5) AS c,"));
	query.names = &job;
	query.names_count = 1;
	strbuf_clear(&sql);
	ch_sums_statement(&reading, CH_SUMS_STACKS, &sql);
	assert_non_null(strstr(strbuf_text(&sql), "SELECT series AS c,"));
	ch_reading_free(&reading);
	strbuf_clear(&series);
	put_series(&series, 7, "a", COLUMN_GAUGE, false);
	put_series(&series, 8, "b", COLUMN_GAUGE, false);
	begin(&reading, &memory, &sums, &series);
	strbuf_clear(&sql);
	ch_sums_statement(&reading, CH_SUMS_STACKS, &sql);
	assert_non_null(strstr(strbuf_text(&sql), "SELECT series AS c,"));
	ch_reading_free(&reading);
	strbuf_free(&sql);
	strbuf_free(&series);
}

/* One report of series 5 with two rows; `values` and `ticks` as told, to be wrong if wanted. */
static void put_report(struct strbuf *rows, uint64_t dict, uint32_t values, uint32_t ticks)
{
	strbuf_add_u64(rows, 5);
	strbuf_add_u64(rows, START_NS);
	strbuf_add_u64(rows, 9);
	strbuf_add_u64(rows, CLOCK_NS_PER_S);
	strbuf_add_u64(rows, dict);
	put_numbers(rows, 2, (const uint32_t[]){ 1, 2 });
	strbuf_add_varint(rows, values);
	for (uint32_t i = 0; i < values; i++)
		strbuf_add_u64(rows, i + 1);
	strbuf_add_varint(rows, 0);
	put_numbers(rows, 1, (const uint32_t[]){ 1 });
	strbuf_add_varint(rows, ticks);
	for (uint32_t i = 0; i < ticks; i++)
		put_number(rows, 3);
	strbuf_add_varint(rows, 0);
}

static const struct store_query every = { .by_series = true };

static int take_reports(struct ch_reading *reading, const struct strbuf *series,
			struct budget *memory, uint64_t dict, uint32_t values, uint32_t ticks)
{
	struct err err;
	int rc;

	begin(reading, memory, &every, series);
	put_report(&reading->reports, dict, values, ticks);
	rc = ch_find_dicts(reading, &err);
	if (rc)
		return rc;
	if (dict == DICT)
		give_stacks(reading);
	return ch_take_reports(reading, &err);
}

static void reports_are_what_was_sent(void **state)
{
	struct budget memory = { .max_bytes = 64 << 20 };
	struct strbuf series = { 0 };
	struct ch_reading reading;
	struct tables_view view;

	(void)state;
	put_series(&series, 5, "a", COLUMN_DELTA, false);
	assert_int_equal(take_reports(&reading, &series, &memory, DICT, 2, 1), 0);
	view = tables_view_of(reading.tables);
	assert_int_equal(tables_check(&view, NULL), 0);
	assert_int_equal(view.reports_count, 1);
	assert_int_equal(view.totals[0], 3);
	assert_int_equal(view.moments_count, 1);
	assert_int_equal(view.moments[0].row, 1);
	assert_int_equal(view.moments[0].tick, 3);
	ch_reading_free(&reading);

	/* Stacks that nobody has: counted, and left out. */
	assert_int_equal(take_reports(&reading, &series, &memory, DICT + 1, 2, 1), 0);
	assert_int_equal(tables_view_of(reading.tables).reports_count, 0);
	assert_int_equal(reading.unreadable, 1);
	ch_reading_free(&reading);

	/* Two rows with three values; times without their rows. */
	assert_int_equal(take_reports(&reading, &series, &memory, DICT, 3, 1), -ERR_CORRUPT);
	ch_reading_free(&reading);
	assert_int_equal(take_reports(&reading, &series, &memory, DICT, 2, 2), -ERR_CORRUPT);
	ch_reading_free(&reading);
	assert_int_equal(memory.used_bytes, 0);
	strbuf_free(&series);
}

/* Of a dictionary of version 2; a number without its flush is missing, not another stack's. */
static void stacks_have_numbers_of_their_own(void **state)
{
	struct budget memory = { .max_bytes = 64 << 20 };
	struct strbuf series = { 0 };

	(void)state;
	put_series(&series, 5, "a", COLUMN_DELTA, false);
	for (int whole = 1; whole >= 0; whole--) {
		struct ch_reading reading;
		struct tables_view view;
		struct err err;

		begin(&reading, &memory, &every, &series);
		put_report(&reading.reports, DICT, 2, 1);
		assert_int_equal(ch_find_dicts(&reading, &err), 0);
		give_dense_stacks(&reading, whole);
		assert_int_equal(ch_take_reports(&reading, &err), 0);
		view = tables_view_of(reading.tables);
		assert_int_equal(view.reports_count, whole);
		assert_int_equal(reading.unreadable, !whole);
		if (whole) {
			assert_int_equal(view.nodes[view.rows[0].stack].parent, view.rows[1].stack);
			assert_int_equal(view.nodes[view.rows[1].stack].parent, 0);
		}
		ch_reading_free(&reading);
	}
	strbuf_free(&series);
}

static int take_dense(uint32_t first_node, uint32_t up, uint32_t frames, uint32_t listed)
{
	struct budget memory = { .max_bytes = 64 << 20 };
	struct strbuf series = { 0 }, rows = { 0 };
	struct ch_reading reading;
	int rc;

	begin(&reading, &memory, &every, &series);
	ch_add_dict(&reading, DICT);
	put_frame(&rows, DICT, 1, "main");
	assert_int_equal(ch_take_dict_rows(&reading, CH_DICT_OF_FRAMES, strbuf_slice(&rows), NULL),
			 0);
	strbuf_clear(&rows);
	strbuf_add_u64(&rows, DICT);
	put_numbers(&rows, listed, (const uint32_t[]){ 1 });
	put_numbers(&rows, listed, (const uint32_t[]){ 0 });
	put_numbers(&rows, frames, (const uint32_t[]){ 1, 1 });
	put_stacks(&rows, first_node, 1, &up, 1, 1, (const uint32_t[]){ 1 });
	rc = ch_take_dict_rows(&reading, CH_DICT_OF_STACKS, strbuf_slice(&rows), NULL);
	ch_reading_free(&reading);
	strbuf_free(&rows);
	return rc;
}

static void stacks_that_contradict_themselves_are_refused(void **state)
{
	(void)state;
	assert_int_equal(take_dense(1, 1, 1, 0), 0);
	assert_int_equal(take_dense(1, 0, 1, 0), -ERR_CORRUPT); /* its own parent */
	assert_int_equal(take_dense(1, 2, 1, 0), -ERR_CORRUPT); /* a parent before the root */
	assert_int_equal(take_dense(1, 1, 2, 0), -ERR_CORRUPT); /* two frames of a node */
	assert_int_equal(take_dense(1, 1, 1, 1), -ERR_CORRUPT); /* of both versions */
	assert_int_equal(take_dense(UINT32_MAX, 1, 1, 0), -ERR_CORRUPT);
}

static void rows_that_are_cut_are_refused(void **state)
{
	struct strbuf series = { 0 }, sums_rows = { 0 };

	(void)state;
	put_series(&series, 5, "a", COLUMN_DELTA, false);
	put_sum(&sums_rows, 5, 3, 1, 9, 2, 21);
	for (size_t len = 1; len < series.len; len++) {
		struct ch_catalogue catalogue;
		const struct ch_wanted wanted = { 0 };

		ch_catalogue_init(&catalogue);
		assert_int_equal(
			ch_catalogue_take(&catalogue, &wanted, slice_from(series.data, len), NULL),
			-ERR_CORRUPT);
		ch_catalogue_free(&catalogue);
	}
	for (size_t len = 1; len < sums_rows.len; len++) {
		struct budget memory = { .max_bytes = 64 << 20 };
		struct ch_reading reading;
		bool raw;

		begin(&reading, &memory, &sums, &series);
		strbuf_add(&reading.reports, sums_rows.data, len);
		assert_int_equal(take_sums(&reading, &raw), -ERR_CORRUPT);
		ch_reading_free(&reading);
	}
	strbuf_free(&sums_rows);
	strbuf_free(&series);
}

static void memory_is_bounded(void **state)
{
	struct budget memory = { .max_bytes = 1 << 10 };
	struct strbuf series = { 0 };
	struct ch_reading reading;
	struct err err;

	(void)state;
	put_series(&series, 5, "a", COLUMN_DELTA, false);
	begin(&reading, &memory, &sums, &series);
	assert_int_equal(ch_pay(&reading, 1 << 20, &err), -ERR_NO_MEMORY);
	assert_non_null(strstr(err.message, "--query-memory"));
	ch_reading_free(&reading);
	assert_int_equal(memory.used_bytes, 0);
	strbuf_free(&series);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_stand_for_several_reports),
		cmocka_unit_test(what_is_not_exact_is_no_sum),
		cmocka_unit_test(queries_are_summed_where_they_allow_it),
		cmocka_unit_test(series_that_need_not_be_told_apart_are_one),
		cmocka_unit_test(reports_are_what_was_sent),
		cmocka_unit_test(stacks_have_numbers_of_their_own),
		cmocka_unit_test(stacks_that_contradict_themselves_are_refused),
		cmocka_unit_test(rows_that_are_cut_are_refused),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests_name("clickhouse_reading", tests, NULL, NULL);
}
