/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam behind store.h: a store of another kind, which keeps tables in memory, takes reports,
 * shows them, and is not taken for a directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "batches.h"
#include "base/mem.h"
#include "server/persist/store_bucket.h"
#include "server/persist/store_engine.h"

#define REPORTS 20

struct memory_store {
	struct store base;
	struct tables tables;
	uint32_t ticks, open_snapshots;
	struct store_delete deleted;
	bool *closed;
};

static struct memory_store *memory_of(struct store *store)
{
	return (struct memory_store *)store;
}

static int memory_append(struct store *store, const struct tables_view *batch,
			 struct append_result *ret, struct err *err)
{
	struct tables_copy copy;

	*ret = (struct append_result){ 0 };
	if (!batch->reports_count)
		return err_set(err, ERR_INVALID, "nothing to keep");
	tables_copy_begin(&copy, &memory_of(store)->tables, batch);
	for (uint32_t i = 0; i < batch->reports_count; i++)
		ret->reports_stored += tables_copy_report(&copy, i);
	tables_copy_end(&copy);
	return 0;
}

static int memory_takes_appends(struct store *store, struct err *err)
{
	(void)store;
	return err_set(err, ERR_NO_SPACE, "memory is full");
}

static int memory_snapshot(struct store *store, const struct store_query *query,
			   struct store_snapshot *ret, struct err *err)
{
	struct memory_store *memory = memory_of(store);
	struct tables_view view = tables_view_of(&memory->tables);

	(void)err;
	*ret = (struct store_snapshot){ mem_new(struct segment), 1, 0, 0, NULL };
	segment_of_tables(ret->segments, &view);
	ret->segments->from_ns = query->from_ns;
	ret->segments->to_ns = query->to_ns;
	memory->open_snapshots++;
	return 0;
}

static void memory_release(struct store *store, struct store_snapshot *snapshot)
{
	memory_of(store)->open_snapshots--;
	free(snapshot->segments);
	*snapshot = (struct store_snapshot){ 0 };
}

static int memory_stat(struct store *store, struct store_stat *ret, struct err *err)
{
	(void)err;
	*ret = (struct store_stat){ .reports = memory_of(store)->tables.reports.count };
	return 0;
}

static int memory_delete(struct store *store, const struct store_delete *order,
			 uint64_t *ret_number, struct err *err)
{
	(void)err;
	memory_of(store)->deleted = *order;
	*ret_number = 7;
	return 0;
}

static void memory_deletes(struct store *store, const struct slice *tenant,
			   struct store_deletes *ret)
{
	(void)tenant;
	*ret = (struct store_deletes){ mem_new_array(struct store_deleted, 1), 1 };
	ret->items[0].from_ns = memory_of(store)->deleted.from_ns;
}

static int memory_tick(struct store *store, struct err *err)
{
	(void)err;
	memory_of(store)->ticks++;
	return 0;
}

static void memory_close(struct store *store)
{
	*memory_of(store)->closed = true;
	tables_free(&memory_of(store)->tables);
	free(store);
}

static const struct store_engine memory_engine = {
	.append = memory_append,
	.takes_appends = memory_takes_appends,
	.snapshot = memory_snapshot,
	.snapshot_release = memory_release,
	.stat = memory_stat,
	.delete_reports = memory_delete,
	.deletes = memory_deletes,
	.tick = memory_tick,
	.close = memory_close,
};

static struct store *open_memory(bool *closed)
{
	struct memory_store *memory = mem_new(struct memory_store);

	*closed = false;
	*memory = (struct memory_store){ .base.engine = &memory_engine, .closed = closed };
	tables_init(&memory->tables);
	for (uint32_t i = 0; i < REPORTS; i++) {
		struct append_result result;

		assert_int_equal(batches_append(&memory->base, i, &result, NULL), 0);
		assert_int_equal(result.reports_stored, 1);
	}
	return &memory->base;
}

static void another_engine_keeps_and_shows_reports(void **state)
{
	bool closed;
	struct store *store = open_memory(&closed);
	uint32_t found[REPORTS] = { 0 };
	struct store_stat stat;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(batches_find(store, found, REPORTS), 0);
	for (uint32_t i = 0; i < REPORTS; i++)
		assert_int_equal(found[i], 1);
	assert_int_equal(store_stat(store, &stat, NULL), 0);
	assert_int_equal(stat.reports, REPORTS);
	assert_int_equal(store_takes_appends(store, &err), -ERR_NO_SPACE);
	assert_string_equal(err.message, "memory is full");
	assert_int_equal(memory_of(store)->open_snapshots, 0);
	store_close(store);
	assert_true(closed);
}

static void counting_needs_nothing_but_snapshots(void **state)
{
	bool closed;
	struct store *store = open_memory(&closed);
	const struct store_delete order = { .from_ns = 3, .to_ns = 4 };
	struct store_deletes deletes;
	struct store_labels labels;
	uint64_t stacks, number;

	(void)state;
	assert_int_equal(store_count_stacks(store, &stacks, NULL), 0);
	assert_true(stacks > 1);
	assert_int_equal(store_count_labels(store, &labels, NULL), 0);
	assert_int_equal(labels.series, BATCHES_SERIES);
	store_labels_free(&labels);
	assert_int_equal(memory_of(store)->open_snapshots, 0);
	assert_int_equal(store_tick(store, NULL), 0);
	assert_int_equal(memory_of(store)->ticks, 1);
	assert_int_equal(store_delete(store, &order, &number, NULL), 0);
	assert_int_equal(number, 7);
	store_deletes(store, NULL, &deletes);
	assert_int_equal(deletes.items[0].from_ns, 3);
	store_deletes_free(&deletes);
	store_close(store);
}

static void work_on_directories_is_refused_elsewhere(void **state)
{
	bool closed, more = true;
	struct store *store = open_memory(&closed);
	const struct store_compact_options options = { 0 };
	struct store_compacted done = { .jobs = 1 };
	struct store_bucket_stat bucket = { .on = true };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(store_seal(store, &err), -ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "storage directory"));
	assert_int_equal(store_compact(store, &options, &done, &err), -ERR_UNSUPPORTED);
	assert_int_equal(done.jobs, 0);
	assert_int_equal(store_scrub(store, &more, &err), -ERR_UNSUPPORTED);
	assert_false(more);
	assert_int_equal(store_bucket_step(store, &err), -ERR_UNSUPPORTED);
	store_bucket_stat(store, &bucket);
	assert_false(bucket.on);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_engine_keeps_and_shows_reports),
		cmocka_unit_test(counting_needs_nothing_but_snapshots),
		cmocka_unit_test(work_on_directories_is_refused_elsewhere),
	};

	store_close(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
