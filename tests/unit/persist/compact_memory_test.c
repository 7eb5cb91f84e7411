/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of which no two have a name in common are compacted within the memory that is allowed: in
 * several steps, into several parts, and then no more; nothing is lost on the way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "batches.h"
#include "model/segment.h"
#include "server/persist/store_admin.h"
#include "store_dir.h"

#define PARTS 12u
#define NAMES 8000u
/* Without a limit they take 60 MB. */
#define LIMIT_BYTES ((size_t)12 << 20)
#define OTHER_BYTES ((size_t)24 << 20) /* the encoder, blocks, and the input that is read */

static int64_t now_ns = (BATCHES_START_S + 1000) * CLOCK_NS_PER_S;

static struct store *open_store(const char *path, size_t compact_bytes)
{
	const struct store_options options = { .path = path,
					       .clock = batches_clock,
					       .clock_context = &now_ns,
					       .compact_bytes = compact_bytes,
					       .no_background = true };
	struct store *store = NULL;
	struct err err;

	if (store_open(&options, &store, &err))
		fail_msg("%s", err.message);
	return store;
}

/* One report of names that nobody has seen. */
static void append(struct store *store, uint32_t n)
{
	const enum column_kind kind = COLUMN_DELTA;
	struct append_result result;
	struct tables tables;
	struct tables_view view;
	unsigned seed = n + 1;
	struct err err;

	tables_init(&tables);
	tables_report_begin(&tables, batches_series(&tables, "names", &kind, 1),
			    (BATCHES_START_S + n) * CLOCK_NS_PER_S, CLOCK_NS_PER_S, n + 1);
	for (uint32_t i = 0; i < NAMES; i++) {
		char name[64] = { 0 };
		const char *const functions[] = { name };

		for (size_t j = 0; j + 1 < sizeof(name); j++)
			name[j] = (char)('0' + rand_r(&seed) / 7 % 64);
		tables_row(&tables, batches_stack(&tables, functions, 1), 0, &(int64_t){ 1 });
	}
	view = tables_view_of(&tables);
	if (store_append(store, &view, &result, &err) || store_seal(store, &err))
		fail_msg("%s", err.message);
	tables_free(&tables);
}

static uint64_t count_rows(struct store *store)
{
	const struct store_query query = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct segment_buffer buffer = { 0 };
	struct store_snapshot snapshot;
	uint64_t rows = 0;
	struct err err;

	if (store_snapshot(store, &query, &snapshot, &err))
		fail_msg("%s", err.message);
	for (size_t i = 0; i < snapshot.count; i++) {
		if (segment_load_stacks(&snapshot.segments[i], &err))
			fail_msg("%s", err.message);
		for (uint32_t b = 0; b < snapshot.segments[i].blocks_count; b++) {
			struct segment_block block;

			if (segment_read(&snapshot.segments[i], b, SEGMENT_ROWS, &buffer, &block,
					 &err))
				fail_msg("%s", err.message);
			for (uint32_t r = 0; r < block.reports_count; r++)
				rows += block.reports[r].row_count;
		}
	}
	segment_buffer_free(&buffer);
	store_snapshot_release(store, &snapshot);
	return rows;
}

struct outcome {
	struct store_compacted compacted, again;
	uint64_t parts, max_rss_bytes;
};

/* In a process of its own, whose memory is measured: compacts twice, a day apart. */
static struct outcome compact(const char *path, size_t compact_bytes)
{
	const struct store_compact_options all = { .all = true };
	struct outcome outcome = { 0 };
	int ends[2], status;
	struct rusage usage;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct store *store = open_store(path, compact_bytes);
		struct store_stat stat;

		if (store_compact(store, &all, &outcome.compacted, NULL))
			_exit(1);
		now_ns += 24 * 3600 * CLOCK_NS_PER_S; /* nothing is held back any more */
		if (store_compact(store, &all, &outcome.again, NULL) ||
		    store_stat(store, &stat, NULL))
			_exit(1);
		outcome.parts = stat.parts;
		store_close(store);
		_exit(write(ends[1], &outcome, sizeof(outcome)) != sizeof(outcome));
	}
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], &outcome, sizeof(outcome)), sizeof(outcome));
	outcome.max_rss_bytes = (uint64_t)usage.ru_maxrss << 10;
	close(ends[0]);
	close(ends[1]);
	return outcome;
}

static void make(const char *path)
{
	struct store *store = open_store(path, 0);

	for (uint32_t n = 0; n < PARTS; n++)
		append(store, n);
	store_close(store);
}

static uint64_t rows_of(const char *path)
{
	struct store *store = open_store(path, 0);
	uint64_t rows = count_rows(store);

	store_close(store);
	return rows;
}

/* Each in a process of its own: this one's memory is what theirs begins with. */
static uint64_t in_child(const char *path, bool makes)
{
	uint64_t rows = 0;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (makes)
			make(path);
		rows = rows_of(path);
		_exit(write(ends[1], &rows, sizeof(rows)) != sizeof(rows));
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &rows, sizeof(rows)), sizeof(rows));
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ends[0]);
	return rows;
}

static void names_without_an_end_are_compacted_in_bounded_memory(void **state)
{
	char *path = store_dir_new();
	struct outcome bounded;

	(void)state;
	assert_int_equal(in_child(path, true), (uint64_t)PARTS * NAMES);
	bounded = compact(path, LIMIT_BYTES);
	print_message("bounded: %llu parts of %u, %llu jobs, then %llu; %llu MB of memory\n",
		      (unsigned long long)bounded.parts, PARTS,
		      (unsigned long long)bounded.compacted.jobs,
		      (unsigned long long)bounded.again.jobs,
		      (unsigned long long)(bounded.max_rss_bytes >> 20));
	assert_in_range(bounded.parts, 2, PARTS / 2);
	assert_int_equal(bounded.again.jobs, 0);
	assert_int_equal(in_child(path, false), (uint64_t)PARTS * NAMES);
	if (!BUILT_WITH_ASAN && !BUILT_WITH_TSAN)
		assert_in_range(bounded.max_rss_bytes, 1, LIMIT_BYTES + OTHER_BYTES);
	store_dir_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_without_an_end_are_compacted_in_bounded_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
