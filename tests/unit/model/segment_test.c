/* SPDX-License-Identifier: Apache-2.0 */
/* Segments over plain tables: blocks are windows that hold every report once, with its rows. */
#include "model/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define REPORTS 2500u

struct fixture {
	struct tables tables;
	struct tables_view view;
	struct segment segment;
	struct segment_buffer buffer;
};

static uint32_t series_of(struct tables *tables, uint32_t columns_count, const char *name)
{
	struct column columns[2] = { { 0, 0, COLUMN_DELTA }, { 0, 0, COLUMN_DELTA } };
	struct group group = { .name = tables_string(tables, slice_of(name)),
			       .column_count = columns_count };

	columns[0].sample_type = tables_string(tables, SLICE_LITERAL("samples"));
	columns[1].sample_type = tables_string(tables, SLICE_LITERAL("bytes"));
	return tables_series(tables, 0, tables_group(tables, &group, columns));
}

/* Report i has i % 3 rows with value 10 i + row (and its negative), stack row + 1. */
static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint32_t series[2], stacks[3] = { 0 };

	tables_init(&f->tables);
	series[0] = series_of(&f->tables, 1, "one");
	series[1] = series_of(&f->tables, 2, "two");
	for (uint32_t i = 0; i < 2; i++) {
		struct frame frame = { .line = i };

		stacks[i] = tables_node(&f->tables, 0, tables_frame(&f->tables, &frame));
	}
	for (uint32_t i = 0; i < REPORTS; i++) {
		tables_report_begin(&f->tables, series[i & 1], i, i == 7 ? INT64_MAX : 5, 0);
		for (uint32_t row = 0; row < i % 3; row++)
			tables_row(&f->tables, stacks[row], 0,
				   (int64_t[]){ 10 * i + row, -(int64_t)(10 * i + row) });
	}
	f->view = tables_view_of(&f->tables);
	segment_of_tables(&f->segment, &f->view);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	segment_buffer_free(&f->buffer);
	tables_free(&f->tables);
	free(f);
	return 0;
}

static void check_rows(const struct fixture *f, const struct segment_block *block,
		       const struct segment_report *report, uint32_t i)
{
	uint64_t columns = 1 + (i & 1);

	assert_int_equal(block->value_stride, 0);
	for (uint32_t row = 0; row < report->row_count; row++) {
		uint64_t at = (report->row_first + row) * block->row_stride;

		assert_int_equal(segment_node(&f->segment, block->slots[at]), row + 1);
		assert_int_equal(block->label_sets[at], 0);
		for (uint64_t c = 0; c < columns; c++)
			assert_int_equal(block->values[report->value_first + row * columns +
						       c * block->column_stride],
					 (c ? -1 : 1) * (int64_t)(10 * i + row));
	}
}

static void blocks_hold_every_report_once_with_its_rows(void **state)
{
	struct fixture *f = *state;
	struct segment_block block;
	uint32_t seen = 0;

	assert_int_equal(segment_load_stacks(&f->segment, NULL), 0);
	assert_int_equal(f->segment.slots_count, 3);
	for (uint32_t b = 0; b < f->segment.blocks_count; b++) {
		assert_int_equal(
			segment_read(&f->segment, b, SEGMENT_ROWS, &f->buffer, &block, NULL), 0);
		assert_int_equal(segment_zone(&f->segment, b).reports, block.reports_count);
		for (uint32_t r = 0; r < block.reports_count; r++, seen++) {
			const struct segment_report *report = &block.reports[r];
			int64_t total = 0;

			assert_int_equal(report->start_ns, seen);
			assert_int_equal(report->end_ns, seen == 7 ? INT64_MAX : seen + 5);
			assert_int_equal(report->series, seen & 1);
			assert_int_equal(report->reports_count, 1);
			assert_int_equal(report->row_count, seen % 3);
			for (uint32_t row = 0; row < seen % 3; row++)
				total += 10 * seen + row;
			assert_int_equal(block.totals[report->total_first], total);
			if (seen & 1)
				assert_int_equal(block.totals[report->total_first + 1], -total);
			check_rows(f, &block, report, seen);
		}
	}
	assert_int_equal(seen, REPORTS);
}

static void zones_of_plain_tables_leave_nothing_out(void **state)
{
	struct fixture *f = *state;

	for (uint32_t b = 0; b < f->segment.blocks_count; b++) {
		struct segment_zone zone = segment_zone(&f->segment, b);
		struct segment_block block;

		assert_int_equal(
			segment_read(&f->segment, b, SEGMENT_HEADERS, &f->buffer, &block, NULL), 0);
		assert_null(block.slots);
		for (uint32_t r = 0; r < block.reports_count; r++) {
			assert_in_range(block.reports[r].series, zone.series_min, zone.series_max);
			assert_true(zone.start_min_ns <= block.reports[r].start_ns);
			assert_true(zone.start_max_ns >= block.reports[r].start_ns);
		}
	}
}

static void empty_tables_have_no_blocks(void **state)
{
	struct tables tables;
	struct tables_view view;
	struct segment segment;

	(void)state;
	tables_init(&tables);
	view = tables_view_of(&tables);
	segment_of_tables(&segment, &view);
	assert_int_equal(segment.blocks_count, 0);
	assert_false(segment.has_sample_labels);
	tables_free(&tables);
}

static void moments_come_when_they_are_wanted(void **state)
{
	struct fixture *f = *state;
	struct segment_block block;

	assert_false(f->segment.has_moments);
	tables_report_begin(&f->tables, 0, 7000, 5, 0);
	tables_row(&f->tables, 1, 0, &(int64_t){ 2 });
	tables_moments(&f->tables, (struct moment[]){ { 0, 4, 0 }, { 0, 4, 0 } }, 2);
	f->view = tables_view_of(&f->tables);
	segment_of_tables(&f->segment, &f->view);
	assert_true(f->segment.has_moments);
	assert_int_equal(segment_read(&f->segment, f->segment.blocks_count - 1, SEGMENT_MOMENTS,
				      &f->buffer, &block, NULL),
			 0);
	assert_int_equal(block.reports[0].moment_count, 0);
	assert_int_equal(block.reports[block.reports_count - 1].moment_count, 2);
	assert_int_equal(
		block.moments[block.reports[block.reports_count - 1].moment_first + 1].tick, 4);
	segment_read(&f->segment, 0, SEGMENT_ROWS, &f->buffer, &block, NULL);
	assert_null(block.moments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(blocks_hold_every_report_once_with_its_rows, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(zones_of_plain_tables_leave_nothing_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(moments_come_when_they_are_wanted, set_up,
						tear_down),
		cmocka_unit_test(empty_tables_have_no_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
