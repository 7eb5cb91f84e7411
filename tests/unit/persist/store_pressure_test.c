/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store does when more arrives than it can write: it refuses, so that memory stays
 * bounded, and takes the same batch later. The disk's sync is held up by a gate.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "batches.h"
#include "server/persist/disk/persist_metrics.h"
#include "server/persist/disk/vfs.h"
#include "store_dir.h"

#define ROWS_OF_A_LARGE_BATCH 2500000u /* 40 MB: two are more than may be in flight */

static int64_t now_ns = (BATCHES_START_S + 2000) * CLOCK_NS_PER_S;

static struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed, reached;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int gated_sync(struct vfs_file *file)
{
	pthread_mutex_lock(&gate.lock);
	gate.reached = true;
	pthread_cond_broadcast(&gate.changed);
	while (gate.closed)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
	return vfs_posix.fdatasync(file);
}

static void set_gate(bool closed)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = closed;
	gate.reached = false;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void wait_until_reached(void)
{
	pthread_mutex_lock(&gate.lock);
	while (!gate.reached)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static struct store *open_at(const char *path, const struct vfs *vfs, uint64_t seal_bytes)
{
	struct store_options options = { .path = path,
					 .vfs = vfs,
					 .clock = batches_clock,
					 .clock_context = &now_ns,
					 .no_background = true,
					 .seal_bytes = seal_bytes };
	struct store *store;
	struct err err = { 0 };

	if (store_open(&options, &store, &err))
		fail_msg("open: %s", err.message);
	return store;
}

struct large {
	struct store *store;
	struct tables tables;
	struct append_result result;
	struct err err;
	int rc;
};

static void make_large(struct large *large, struct store *store, int64_t second)
{
	const char *const functions[] = { "main", "work" };
	const enum column_kind kinds[] = { COLUMN_DELTA };
	const struct row row = { .stack = 0 };
	struct row *rows;
	int64_t *values;

	*large = (struct large){ .store = store };
	tables_init(&large->tables);
	rows = mem_new_array(struct row, ROWS_OF_A_LARGE_BATCH);
	values = mem_new_array(int64_t, ROWS_OF_A_LARGE_BATCH);
	for (uint32_t i = 0; i < ROWS_OF_A_LARGE_BATCH; i++) {
		rows[i] = row;
		values[i] = 1;
	}
	rows[0].stack = batches_stack(&large->tables, functions, 2);
	tables_report_begin(&large->tables, batches_series(&large->tables, "large", kinds, 1),
			    (BATCHES_START_S + second) * CLOCK_NS_PER_S, CLOCK_NS_PER_S, 1);
	assert_true(tables_rows(&large->tables, rows, ROWS_OF_A_LARGE_BATCH, values));
	free(rows);
	free(values);
}

static void *append_large(void *context)
{
	struct large *large = context;
	struct tables_view view = tables_view_of(&large->tables);

	large->rc = store_append(large->store, &view, &large->result, &large->err);
	return NULL;
}

static void more_than_may_wait_is_refused_and_taken_later(void **state)
{
	struct vfs vfs = vfs_posix;
	char *path = store_dir_new();
	struct large first, second;
	struct store *store;
	pthread_t thread;

	(void)state;
	vfs.fdatasync = gated_sync;
	store = open_at(path, &vfs, 0);
	make_large(&first, store, 1);
	make_large(&second, store, 2);
	set_gate(true);
	assert_int_equal(pthread_create(&thread, NULL, append_large, &first), 0);
	wait_until_reached();

	append_large(&second);
	assert_int_equal(second.rc, -ERR_NO_MEMORY); /* 429, RESOURCE_EXHAUSTED */
	assert_int_equal(second.err.code, ERR_NO_MEMORY);
	assert_non_null(strstr(second.err.message, "try again later"));

	set_gate(false);
	pthread_join(thread, NULL);
	assert_int_equal(first.rc, 0);
	assert_int_equal(first.result.rows_stored, ROWS_OF_A_LARGE_BATCH);
	append_large(&second);
	assert_int_equal(second.rc, 0);
	assert_int_equal(second.result.reports_stored, 1); /* the refused one left no trace */
	assert_int_equal(metric_get(&store_in_flight_bytes), 0);
	tables_free(&first.tables);
	tables_free(&second.tables);
	store_close(store);
	store_dir_remove(path);
}

static void memtables_that_nobody_writes_down_are_bounded(void **state)
{
	char *path = store_dir_new();
	struct store *store = open_at(path, NULL, 4096);
	struct append_result result;
	struct store_stat stat;
	struct err err = { 0 };
	uint32_t n = 0;
	int rc;

	(void)state;
	do
		rc = batches_append(store, n++, &result, &err);
	while (!rc && n < 100000);
	assert_int_equal(rc, -ERR_NO_MEMORY);
	assert_int_equal(store_stat(store, &stat, &err), 0);
	assert_true(stat.memtables >= 2 && stat.memtables <= 8);
	assert_int_equal(stat.reports, n - 1);
	assert_int_equal(store_tick(store, &err), 0); /* what the background thread does */
	assert_int_equal(batches_append(store, n - 1, &result, &err), 0);
	assert_int_equal(result.reports_stored, 1);
	store_close(store);
	store_dir_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_may_wait_is_refused_and_taken_later),
		cmocka_unit_test(memtables_that_nobody_writes_down_are_bounded),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
