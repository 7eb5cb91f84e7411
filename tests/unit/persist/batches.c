/* SPDX-License-Identifier: Apache-2.0 */
#include "batches.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"

int64_t batches_clock(void *context)
{
	return *(const int64_t *)context;
}

uint32_t batches_series(struct tables *tables, const char *name, const enum column_kind *kinds,
			uint32_t columns)
{
	struct label label = { .name = tables_string(tables, slice_of("comm")),
			       .value = tables_string(tables, slice_of(name)) };
	struct group group = { .name = tables_string(tables, slice_of("on_cpu")),
			       .period_type = tables_string(tables, slice_of("cpu")),
			       .period_unit = tables_string(tables, slice_of("nanoseconds")),
			       .column_count = columns };
	struct column list[TABLES_COLUMNS_PER_GROUP_MAX];

	for (uint32_t i = 0; i < columns; i++) {
		char type[16];

		snprintf(type, sizeof(type), "type-%u", i);
		list[i] = (struct column){ tables_string(tables, slice_of(type)),
					   tables_string(tables, slice_of("count")), kinds[i] };
	}
	return tables_series(tables, tables_label_set(tables, &label, 1),
			     tables_group(tables, &group, list));
}

uint32_t batches_stack(struct tables *tables, const char *const *functions, size_t count)
{
	uint32_t node = 0;

	for (size_t i = 0; i < count; i++) {
		struct frame frame = { .kind = FRAME_GO,
				       .function = tables_string(tables, slice_of(functions[i])) };

		node = tables_node(tables, node, tables_frame(tables, &frame));
	}
	return node;
}

static void stack_name(uint32_t n, uint32_t row, char ret[32])
{
	snprintf(ret, 32, "f%u", (n * 7 + row * 3) % 50);
}

static uint32_t rows_of(uint32_t n)
{
	return 1 + n % 4;
}

static int64_t value_of(uint32_t n, uint32_t row)
{
	return (int64_t)n * 100 + row + 1;
}

/* Of odd reports: the first row was seen once, n ms after the start, for request n. */
static struct trace_link link_of(uint32_t n)
{
	struct trace_link link = { .span_id = { 1 } };

	memcpy(link.trace_id, &n, sizeof(n));
	return link;
}

static void add_moments(struct tables *tables, uint32_t n)
{
	struct trace_link link = link_of(n);
	struct moment moment = { 0, n, tables_link(tables, &link) };

	tables_moments(tables, &moment, 1);
}

void batches_add(struct tables *tables, uint32_t n)
{
	const enum column_kind kind = COLUMN_DELTA;
	char name[32];
	uint32_t series;

	snprintf(name, sizeof(name), "series-%u", n % BATCHES_SERIES);
	series = batches_series(tables, name, &kind, 1);
	tables_report_begin(tables, series, (BATCHES_START_S + n) * CLOCK_NS_PER_S,
			    10 * CLOCK_NS_PER_S, n + 1);
	for (uint32_t row = 0; row < rows_of(n); row++) {
		char leaf[32];
		const char *const functions[] = { "main", leaf };
		int64_t value = value_of(n, row);

		stack_name(n, row, leaf);
		tables_row(tables, batches_stack(tables, functions, 2), 0, &value);
	}
	if (n % 2)
		add_moments(tables, n);
}

/* Kept from one call to the next: their maps of memory cost more than all the rest. */
static struct {
	pthread_mutex_t lock;
	struct tables tables;
	bool is_made;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int append_by(struct tables *tables, struct store *store, uint32_t n,
		     struct append_result *ret, struct err *err)
{
	struct tables_view view;

	batches_add(tables, n);
	view = tables_view_of(tables);
	return store_append(store, &view, ret, err);
}

int batches_append(struct store *store, uint32_t n, struct append_result *ret, struct err *err)
{
	struct tables own;
	int rc;

	if (pthread_mutex_trylock(&kept.lock)) { /* another thread has them */
		tables_init(&own);
		rc = append_by(&own, store, n, ret, err);
		tables_free(&own);
		return rc;
	}
	if (!kept.is_made)
		tables_init(&kept.tables);
	kept.is_made = true;
	tables_reset(&kept.tables);
	rc = append_by(&kept.tables, store, n, ret, err);
	pthread_mutex_unlock(&kept.lock);
	return rc;
}

static void check_moments(const struct segment_block *block, const struct segment_report *report,
			  uint32_t n)
{
	struct trace_link link = link_of(n);
	const struct moment *moment;

	assert_int_equal(block->moments ? report->moment_count : 0, n % 2);
	if (n % 2 == 0)
		return;
	moment = &block->moments[report->moment_first];
	assert_int_equal(block->values ? block->values[report->value_first + moment->row] : 1,
			 value_of(n, 0));
	assert_true(moment->row < report->row_count);
	assert_int_equal(moment->tick, n);
	assert_memory_equal(&block->links[moment->link], &link, sizeof(link));
}

static void check_report(const struct segment *segment, const struct segment_block *block,
			 const struct segment_report *report, uint32_t n)
{
	const struct tables_view *view = &segment->view;
	int64_t total = 0;
	char name[32];

	snprintf(name, sizeof(name), "series-%u", n % BATCHES_SERIES);
	assert_true(slice_is(tables_label_value(view, view->series[report->series].label_set,
						SLICE_LITERAL("comm")),
			     name));
	assert_int_equal(report->start_ns, (BATCHES_START_S + n) * CLOCK_NS_PER_S);
	assert_int_equal(report->row_count, rows_of(n));
	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t slot = block->slots[(report->row_first + i) * block->row_stride];
		int64_t value = block->values ? block->values[report->value_first + i] : 1;
		const struct node *leaf = &view->nodes[segment_node(segment, slot)];
		char want[32];

		assert_in_range(value, n * 100 + 1, n * 100 + rows_of(n));
		stack_name(n, (uint32_t)(value - n * 100 - 1), want);
		assert_true(slice_is(tables_text(view, view->frames[leaf->frame].function), want));
		assert_true(slice_is(
			tables_text(view, view->frames[view->nodes[leaf->parent].frame].function),
			"main"));
		total += value;
	}
	assert_int_equal(block->totals[report->total_first], total);
	check_moments(block, report, n);
}

/* Report n starts n seconds after the first. Returns whether the segment could be read. */
static bool find_in(struct segment *segment, struct segment_buffer *buffer, uint32_t *found,
		    uint32_t count)
{
	struct err err = { 0 };

	if (segment_load_stacks(segment, &err)) {
		assert_int_equal(err.code, ERR_CORRUPT);
		return false;
	}
	for (uint32_t i = 0; i < segment->blocks_count; i++) {
		struct segment_block block;

		if (segment_read(segment, i, SEGMENT_MOMENTS, buffer, &block, &err)) {
			assert_int_equal(err.code, ERR_CORRUPT);
			return false;
		}
		for (uint32_t j = 0; j < block.reports_count; j++) {
			int64_t n = block.reports[j].start_ns / CLOCK_NS_PER_S - BATCHES_START_S;

			assert_in_range(n, 0, count - 1);
			check_report(segment, &block, &block.reports[j], (uint32_t)n);
			found[n]++;
		}
	}
	return true;
}

size_t batches_find(struct store *store, uint32_t *found, uint32_t count)
{
	const struct store_query query = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct segment_buffer buffer = { 0 };
	struct store_snapshot snapshot;
	struct err err = { 0 };
	size_t unreadable = 0;

	memset(found, 0, count * sizeof(*found));
	if (store_snapshot(store, &query, &snapshot, &err))
		fail_msg("snapshot: %s", err.message);
	for (size_t i = 0; i < snapshot.count; i++)
		unreadable += !find_in(&snapshot.segments[i], &buffer, found, count);
	unreadable += snapshot.parts_unreadable;
	store_snapshot_release(store, &snapshot);
	segment_buffer_free(&buffer);
	return unreadable;
}
