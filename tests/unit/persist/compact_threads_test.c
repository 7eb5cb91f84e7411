/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction, deletion, retention and scrubbing beside appends and reads, all at once: every
 * snapshot is one moment, in which each report is there once.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "history.h"
#include "model/segment.h"
#include "sim_disk.h"

#define DIR "/store"
#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define BEGIN_NS (19000 * 24 * HOUR_NS)
#define BATCHES 150
#define REPORTS_PER_BATCH 4
#define READS_MIN 6

struct world {
	struct sim_disk *disk;
	struct store *store;
	_Atomic int64_t now_ns;
	_Atomic uint64_t appended;
	_Atomic bool done;
	struct history history; /* the writer's */
	_Atomic uint64_t compactions, reads;
};

static int64_t clock_of(void *context)
{
	const struct world *world = context;

	return atomic_load(&world->now_ns);
}

static void *append(void *context)
{
	struct world *world = context;
	struct err err;

	for (uint32_t i = 0; i < BATCHES; i++) {
		int64_t now_ns = atomic_fetch_add(&world->now_ns, HOUR_NS / 4) + HOUR_NS / 4;

		if (history_append(&world->history, world->store, REPORTS_PER_BATCH,
				   now_ns - HOUR_NS, now_ns, &err))
			fail_msg("%s", err.message);
		atomic_fetch_add(&world->appended, REPORTS_PER_BATCH);
		if (i % 3 == 2 && store_seal(world->store, &err))
			fail_msg("%s", err.message);
	}
	atomic_store(&world->done, true);
	return NULL;
}

static void *compact(void *context)
{
	const struct store_compact_options options = { 0 };
	struct world *world = context;
	struct store_compacted done;
	struct err err;
	bool more, was_done;

	do {
		was_done = atomic_load(&world->done);
		if (store_compact(world->store, &options, &done, &err))
			fail_msg("%s", err.message);
		atomic_fetch_add(&world->compactions, done.jobs);
		if (store_scrub(world->store, &more, &err))
			fail_msg("%s", err.message);
	} while (!was_done);
	return NULL;
}

/* Reads the rows too: what a snapshot has pinned must stay readable. */
static uint64_t count_reports(struct world *world)
{
	const struct store_query query = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct segment_buffer buffer = { 0 };
	struct store_snapshot snapshot;
	uint64_t count = 0;
	struct err err;

	if (store_snapshot(world->store, &query, &snapshot, &err))
		fail_msg("%s", err.message);
	assert_int_equal(snapshot.parts_unreadable, 0);
	for (size_t i = 0; i < snapshot.count; i++) {
		if (segment_load_stacks(&snapshot.segments[i], &err))
			fail_msg("%s", err.message);
		for (uint32_t b = 0; b < snapshot.segments[i].blocks_count; b++) {
			struct segment_block block;

			if (segment_read(&snapshot.segments[i], b, SEGMENT_ROWS, &buffer, &block,
					 &err))
				fail_msg("%s", err.message);
			count += block.reports_count;
		}
	}
	segment_buffer_free(&buffer);
	store_snapshot_release(world->store, &snapshot);
	return count;
}

static void *read_all(void *context)
{
	struct world *world = context;

	while (!atomic_load(&world->done) || atomic_load(&world->reads) < READS_MIN) {
		uint64_t before = atomic_load(&world->appended);
		uint64_t count = count_reports(world);
		uint64_t after = atomic_load(&world->appended) + REPORTS_PER_BATCH;

		if (count < before || count > after)
			fail_msg("%llu reports, appended were %llu to %llu",
				 (unsigned long long)count, (unsigned long long)before,
				 (unsigned long long)after);
		atomic_fetch_add(&world->reads, 1);
	}
	return NULL;
}

static void begin(struct world *world)
{
	struct store_options options = {
		.path = DIR,
		.clock = clock_of,
		.clock_context = world,
		.no_background = true,
	};
	struct err err;

	world->disk = sim_disk_new(1);
	atomic_store(&world->now_ns, BEGIN_NS);
	history_init(&world->history, 1);
	options.vfs = sim_disk_vfs(world->disk);
	if (store_open(&options, &world->store, &err))
		fail_msg("%s", err.message);
}

static void end(struct world *world)
{
	store_close(world->store);
	history_free(&world->history);
	sim_disk_free(world->disk);
}

static void readers_see_every_report_once_while_parts_are_compacted(void **state)
{
	static void *(*const jobs[])(void *) = { append, compact, read_all, read_all };
	struct world world = { 0 };
	pthread_t threads[4];

	(void)state;
	begin(&world);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, jobs[i], &world), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	print_message("# %llu compactions, %llu reads\n",
		      (unsigned long long)atomic_load(&world.compactions),
		      (unsigned long long)atomic_load(&world.reads));
	assert_true(atomic_load(&world.compactions) > 5);
	assert_true(atomic_load(&world.reads) >= READS_MIN);
	history_check(&world.history, world.store);
	end(&world);
}

/* What was in memory, in parts and in a compaction under way when it was deleted is gone. */
static void deletions_hold_whatever_runs_beside_them(void **state)
{
	struct world world = { 0 };
	pthread_t compactor;
	struct err err;

	(void)state;
	begin(&world);
	assert_int_equal(pthread_create(&compactor, NULL, compact, &world), 0);
	for (uint32_t i = 0; i < 36; i++) {
		int64_t now_ns = atomic_fetch_add(&world.now_ns, HOUR_NS) + HOUR_NS;

		for (uint32_t j = 0; j < 5; j++)
			if (history_append(&world.history, world.store, 4, now_ns - HOUR_NS, now_ns,
					   &err) ||
			    (j % 2 && store_seal(world.store, &err)))
				fail_msg("%s", err.message);
		if (i % 3 == 2) {
			if (history_delete(&world.history, world.store, i % HISTORY_DELETES,
					   now_ns - 20 * HOUR_NS, now_ns - HOUR_NS / 2, &err))
				fail_msg("%s", err.message);
			history_check(&world.history, world.store);
		}
	}
	atomic_store(&world.done, true);
	pthread_join(compactor, NULL);
	history_check(&world.history, world.store);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_see_every_report_once_while_parts_are_compacted),
		cmocka_unit_test(deletions_hold_whatever_runs_beside_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
