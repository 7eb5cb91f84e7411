/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that follows the bucket of another: whatever that one does, and whichever call of the
 * bucket fails, it shows the reports of one of its manifests, each once, and never an older one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/log.h"
#include "batches.h"
#include "server/persist/disk/persist_metrics.h"
#include "server/persist/store_admin.h"
#include "server/persist/store_bucket.h"
#include "server/persist/store_follow.h"
#include "sim_bucket.h"
#include "sim_disk.h"

#define REPORTS 60
#define URL "s3://bucket/p"

struct world {
	struct sim_disk *disk, *other;
	struct bucket *bucket;
	struct store *store, *follower;
	int64_t now_ns;
	uint64_t random;
	uint32_t next;
};

static uint64_t draw(struct world *world, uint64_t below)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return (world->random >> 33) % below;
}

static struct store *open_writer(struct world *world, struct sim_disk *disk, const char *path)
{
	const struct store_options options = { .path = path,
					       .vfs = sim_disk_vfs(disk),
					       .clock = batches_clock,
					       .clock_context = &world->now_ns,
					       .bucket = world->bucket,
					       .bucket_url = URL,
					       .no_background = true };
	struct store *store;
	struct err err;

	if (store_open(&options, &store, &err))
		fail_msg("%s", err.message);
	return store;
}

static struct store *open_follower(struct world *world)
{
	const struct store_follow_source source = { world->bucket, URL };
	const struct store_follow_options options = { .sources = &source,
						      .sources_count = 1,
						      .cache_dir = "/cache",
						      .vfs = sim_disk_vfs(world->other),
						      .clock = batches_clock,
						      .clock_context = &world->now_ns,
						      .no_background = true };
	struct store *store;
	struct err err;

	if (store_follow_open(&options, &store, &err))
		fail_msg("%s", err.message);
	return store;
}

static void begin(struct world *world, uint64_t seed)
{
	*world = (struct world){ .disk = sim_disk_new(seed),
				 .other = sim_disk_new(seed + 1),
				 .bucket = sim_bucket_new(),
				 .random = seed * 77 + 1,
				 .now_ns = (BATCHES_START_S + 100) * CLOCK_NS_PER_S };
	assert_int_equal(sim_disk_vfs(world->other)->mkdir(sim_disk_vfs(world->other), "/cache"),
			 0);
	world->follower = open_follower(world);
	world->store = open_writer(world, world->disk, "/store");
}

static void end(struct world *world)
{
	store_close(world->follower);
	store_close(world->store);
	world->bucket->close(world->bucket);
	sim_disk_free(world->disk);
	sim_disk_free(world->other);
}

static void append(struct world *world, struct store *store)
{
	struct append_result result;

	if (world->next < REPORTS)
		assert_int_equal(batches_append(store, world->next++, &result, NULL), 0);
}

static void compact(struct store *store)
{
	const struct store_compact_options all = { .all = true };
	struct store_compacted done;

	assert_int_equal(store_compact(store, &all, &done, NULL), 0);
}

static void delete_some(struct world *world)
{
	char selector[64];
	int64_t from_ns = (BATCHES_START_S + (int64_t)draw(world, REPORTS)) * CLOCK_NS_PER_S;
	struct store_delete order = { .from_ns = from_ns,
				      .to_ns = from_ns + 8 * CLOCK_NS_PER_S,
				      .by = "test" };
	uint64_t number;

	snprintf(selector, sizeof(selector), "{comm=\"series-%u\"}",
		 (unsigned int)draw(world, BATCHES_SERIES));
	order.selector = slice_of(selector);
	assert_int_equal(store_delete(world->store, &order, &number, NULL), 0);
}

static void find(struct store *store, uint32_t found[static REPORTS])
{
	memset(found, 0, REPORTS * sizeof(*found));
	assert_int_equal(batches_find(store, found, REPORTS), 0);
}

static void check_same(struct store *one, struct store *other)
{
	uint32_t found[REPORTS], wanted[REPORTS];

	find(one, found);
	find(other, wanted);
	assert_memory_equal(found, wanted, sizeof(found));
}

/* Brings the bucket up to date, and then the follower. */
static void meet(struct world *world)
{
	struct err err = { 0 };

	sim_bucket_plan(world->bucket, SIM_BUCKET_WHOLE, 0);
	world->now_ns += CLOCK_NS_PER_S;
	if (store_seal(world->store, &err) || store_bucket_step(world->store, &err) ||
	    store_tick(world->follower, &err))
		fail_msg("%s", err.message);
}

static void do_something(struct world *world)
{
	switch (draw(world, 9)) {
	case 0:
	case 1:
	case 2:
		append(world, world->store);
		break;
	case 3:
		assert_int_equal(store_seal(world->store, NULL), 0);
		break;
	case 4:
		compact(world->store);
		break;
	case 5:
		if (draw(world, 3) == 0)
			delete_some(world);
		break;
	case 6:
		world->now_ns += CLOCK_NS_PER_S;
		may_fail(store_tick(world->follower, NULL));
		break;
	default:
		world->now_ns += (draw(world, 8) ? 1 : 3601) * CLOCK_NS_PER_S;
		may_fail(store_bucket_step(world->store, NULL));
	}
}

/* A refresh that fails changes nothing; one that does not, shows what the writer has there. */
static void it_shows_what_the_bucket_has(void **state)
{
	const char *rounds = getenv("FIRN_TEST_ROUNDS");
	uint64_t otherwise = BUILT_WITH_TSAN ? 1 : BUILT_WITH_ASAN ? 15 : 60;
	uint64_t count = rounds ? strtoull(rounds, NULL, 10) : otherwise;

	(void)state;
	for (uint64_t seed = 1; seed <= count; seed++) {
		uint32_t before[REPORTS], after[REPORTS];
		struct world world;

		begin(&world, seed);
		for (int i = 0; i < 150; i++) {
			if (draw(&world, 12) == 0)
				sim_bucket_plan(
					world.bucket,
					(enum sim_bucket_fault)draw(&world, SIM_BUCKET_FAULTS),
					1 + draw(&world, 6));
			do_something(&world);
			if (draw(&world, 10) == 0) {
				meet(&world);
				check_same(world.follower, world.store);
				find(world.follower, before);
				append(&world, world.store);
				sim_bucket_plan(world.bucket, SIM_BUCKET_CUT, 1);
				may_fail(store_bucket_step(world.store, NULL));
				assert_int_not_equal(store_tick(world.follower, NULL), 0);
				sim_bucket_plan(world.bucket, SIM_BUCKET_WHOLE, 0);
				find(world.follower, after);
				assert_memory_equal(before, after, sizeof(before));
			}
		}
		end(&world);
	}
}

/* What it pinned stays while the writer compacts, deletes and drops, and the follower goes on. */
static void a_snapshot_keeps_its_moment(void **state)
{
	const struct store_query all = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct store_snapshot snapshot;
	struct world world;
	uint64_t reports = 0;
	struct err err;

	(void)state;
	begin(&world, 3);
	for (int i = 0; i < 6; i++) {
		append(&world, world.store);
		assert_int_equal(store_seal(world.store, &err), 0);
	}
	meet(&world);
	assert_int_equal(store_snapshot(world.follower, &all, &snapshot, &err), 0);
	compact(world.store);
	delete_some(&world);
	meet(&world);
	for (size_t i = 0; i < snapshot.count; i++) {
		struct segment *segment = &snapshot.segments[i];

		assert_int_equal(segment_load_stacks(segment, &err), 0);
		for (uint32_t block = 0; block < segment->blocks_count; block++)
			reports += segment->zones[block].reports;
	}
	assert_int_equal(reports, 6);
	assert_int_not_equal(snapshot.version, 0);
	store_snapshot_release(world.follower, &snapshot);
	check_same(world.follower, world.store);
	end(&world);
}

/* The follower sleeps while the objects of its manifest go. */
static void lose_objects(struct world *world)
{
	struct err err;

	for (int i = 0; i < 4; i++) {
		append(world, world->store);
		assert_int_equal(store_seal(world->store, &err), 0);
	}
	meet(world);
	append(world, world->store);
	assert_int_equal(store_seal(world->store, &err), 0);
	compact(world->store);
	for (int i = 0; i < 3; i++) {
		world->now_ns += 3601 * CLOCK_NS_PER_S;
		assert_int_equal(store_bucket_step(world->store, &err), 0);
	}
	assert_int_equal(sim_bucket_count(world->bucket, "/part/"), 1);
}

static void missing_objects_make_it_look_again(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 4);
	lose_objects(&world);
	check_same(world.follower, world.store);
	end(&world);
}

/* Queries that miss objects while the first one looks again. */
#define LATE_MAX 3
struct late_query {
	pthread_t thread;
	uint32_t found[REPORTS];
	size_t unreadable;
};
static struct {
	struct world *world;
	struct bucket whole; /* the bucket's functions */
	struct late_query queries[LATE_MAX];
	size_t count;
	int64_t look_takes_ns; /* the first one */
	sem_t have_missed;
	bool have_begun;
} late;
static _Thread_local bool is_late;

static void *ask_late(void *context)
{
	struct late_query *query = context;

	is_late = true;
	query->unreadable = batches_find(late.world->follower, query->found, REPORTS);
	return NULL;
}

/* Once for each of them. */
static int get_range_and_tell(struct bucket *bucket, const char *key, uint64_t from, size_t len,
			      struct strbuf *out, struct err *err)
{
	int rc = late.whole.get_range(bucket, key, from, len, out, err);

	if (rc == -ERR_NOT_FOUND && is_late) {
		is_late = false;
		sem_post(&late.have_missed);
	}
	return rc;
}

static int list_when_missed(struct bucket *bucket, const char *prefix, const char *after,
			    bool folders, bucket_entry_f *entry, void *context, struct err *err)
{
	if (!late.have_begun) {
		late.have_begun = true;
		late.world->now_ns += late.look_takes_ns;
		for (size_t i = 0; i < late.count; i++)
			assert_int_equal(pthread_create(&late.queries[i].thread, NULL, ask_late,
							&late.queries[i]),
					 0);
		for (size_t i = 0; i < late.count; i++)
			sem_wait(&late.have_missed);
	}
	return late.whole.list(bucket, prefix, after, folders, entry, context, err);
}

/* All show what the writer has. Returns how often the follower looked. */
static int64_t ask_when_objects_miss(size_t count, int64_t look_takes_ns)
{
	uint32_t wanted[REPORTS];
	struct world world;
	int64_t looks;

	begin(&world, 4);
	lose_objects(&world);
	looks = metric_get(&store_follow_refreshes);
	memset(&late, 0, sizeof(late));
	late.world = &world;
	late.whole = *world.bucket;
	late.count = count;
	late.look_takes_ns = look_takes_ns;
	sem_init(&late.have_missed, 0, 0);
	world.bucket->get_range = get_range_and_tell;
	world.bucket->list = list_when_missed;
	check_same(world.follower, world.store);
	assert_true(late.have_begun);
	find(world.store, wanted);
	for (size_t i = 0; i < count; i++) {
		pthread_join(late.queries[i].thread, NULL);
		assert_int_equal(late.queries[i].unreadable, 0);
		assert_memory_equal(late.queries[i].found, wanted, sizeof(wanted));
	}
	sem_destroy(&late.have_missed);
	end(&world);
	return metric_get(&store_follow_refreshes) - looks;
}

static void all_queries_that_miss_objects_see_what_one_looked_for(void **state)
{
	(void)state;
	assert_int_equal(ask_when_objects_miss(1, 0), 1);
}

/* What it saw may be too old for them, but they do not look one after the other. */
static void all_queries_that_wait_for_a_long_look_share_the_next(void **state)
{
	(void)state;
	assert_int_equal(ask_when_objects_miss(LATE_MAX, 2 * CLOCK_NS_PER_S), 2);
}

static void several_writers_are_shown_together(void **state)
{
	struct sim_disk *disk = sim_disk_new(9);
	uint32_t found[REPORTS];
	struct store_stat stat;
	struct world world;
	struct store *second;
	struct err err;

	(void)state;
	begin(&world, 5);
	append(&world, world.store);
	meet(&world);
	second = open_writer(&world, disk, "/second");
	append(&world, second);
	append(&world, second);
	assert_int_equal(store_seal(second, &err), 0);
	assert_int_equal(store_bucket_step(second, &err), 0);
	store_close(world.follower); /* new ones are looked for once a minute: at once is at open */
	world.follower = open_follower(&world);
	find(world.follower, found);
	for (int i = 0; i < 3; i++)
		assert_int_equal(found[i], 1);
	assert_int_equal(store_stat(world.follower, &stat, &err), 0);
	assert_int_equal(stat.reports, 3);
	assert_int_equal(stat.parts, 2);
	assert_true(stat.bytes_total > 0);
	store_close(second);
	sim_disk_free(disk);
	end(&world);
}

static void it_says_how_old_it_is_and_takes_nothing(void **state)
{
	struct store_delete order = { .selector = SLICE_LITERAL("{comm=\"x\"}"), .by = "test" };
	struct store_bucket_stat stat;
	struct append_result result;
	struct world world;
	uint64_t number;
	struct err err;

	(void)state;
	begin(&world, 6);
	assert_int_equal(store_takes_appends(world.follower, &err), -ERR_UNAVAILABLE);
	store_bucket_stat(world.follower, &stat);
	assert_true(stat.follows && !stat.manifest && !stat.behind_ns);
	assert_non_null(strstr(stat.error, "no firn store"));
	append(&world, world.store);
	meet(&world);
	assert_int_equal(store_takes_appends(world.follower, &err), 0);
	world.now_ns += 30 * CLOCK_NS_PER_S;
	store_bucket_stat(world.follower, &stat);
	assert_int_equal(stat.behind_ns, 30 * CLOCK_NS_PER_S);
	assert_int_equal(stat.looked_at_ns, world.now_ns - 30 * CLOCK_NS_PER_S);
	assert_int_equal(stat.parts, 1);
	assert_string_equal(stat.error, "");
	append(&world, world.store); /* in the writer's log alone */
	world.now_ns += 5 * CLOCK_NS_PER_S;
	meet(&world);
	store_bucket_stat(world.follower, &stat);
	assert_int_equal(stat.behind_ns, 0);
	sim_bucket_plan(world.bucket, SIM_BUCKET_CUT, 1);
	assert_int_equal(store_tick(world.follower, &err), -ERR_UNAVAILABLE);
	store_bucket_stat(world.follower, &stat);
	assert_string_not_equal(stat.error, "");
	sim_bucket_plan(world.bucket, SIM_BUCKET_WHOLE, 0);
	assert_int_equal(batches_append(world.follower, 7, &result, &err), -ERR_READ_ONLY);
	assert_int_equal(store_delete(world.follower, &order, &number, &err), -ERR_READ_ONLY);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_how_old_it_is_and_takes_nothing),
		cmocka_unit_test(several_writers_are_shown_together),
		cmocka_unit_test(missing_objects_make_it_look_again),
		cmocka_unit_test(all_queries_that_miss_objects_see_what_one_looked_for),
		cmocka_unit_test(all_queries_that_wait_for_a_long_look_share_the_next),
		cmocka_unit_test(a_snapshot_keeps_its_moment),
		cmocka_unit_test(it_shows_what_the_bucket_has),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT); /* failures are the subject here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
