/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store with a bucket: whatever call of the bucket fails or is cut off, a store made of the
 * bucket has every report that the store said was there, none twice, and goes on where it ended;
 * the one it came from is shut out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "batches.h"
#include "server/persist/manifest/bucket_manifest.h"
#include "server/persist/store_admin.h"
#include "server/persist/store_bucket.h"
#include "sim_bucket.h"
#include "sim_disk.h"

#define REPORTS 40
#define CALLS_TO_ATTACH 4u /* two puts and a removal of a probe, a list of manifests */
#define DIR "/store"
#define URL "s3://bucket/p"

struct world {
	struct sim_disk *disk;
	struct bucket *bucket;
	struct store *store;
	int64_t now_ns;
	uint64_t random;
	uint32_t next;
	bool tried[REPORTS], acked[REPORTS];
	int64_t acked_ns[REPORTS];
};

static uint64_t draw(struct world *world, uint64_t below)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return (world->random >> 33) % below;
}

static int open_store(struct world *world, struct sim_disk *disk, struct store **ret,
		      struct err *err)
{
	const struct store_options options = { .path = DIR,
					       .vfs = sim_disk_vfs(disk),
					       .clock = batches_clock,
					       .clock_context = &world->now_ns,
					       .segment_bytes = 32 * 1024,
					       .bucket = world->bucket,
					       .bucket_url = URL,
					       .no_background = true };

	return store_open(&options, ret, err);
}

static void begin(struct world *world, uint64_t seed)
{
	struct err err;

	*world = (struct world){ .disk = sim_disk_new(seed),
				 .bucket = sim_bucket_new(),
				 .random = seed * 77 + 1,
				 .now_ns = (BATCHES_START_S + 100) * CLOCK_NS_PER_S };
	if (open_store(world, world->disk, &world->store, &err))
		fail_msg("%s", err.message);
}

static void end(struct world *world)
{
	store_close(world->store);
	world->bucket->close(world->bucket);
	sim_disk_free(world->disk);
}

static void append(struct world *world)
{
	struct append_result result;
	uint32_t n = world->next;

	if (n == REPORTS)
		return;
	world->next++;
	world->tried[n] = true;
	if (!batches_append(world->store, n, &result, NULL)) {
		world->acked[n] = true;
		world->acked_ns[n] = world->now_ns;
	}
}

static void compact(struct world *world)
{
	const struct store_compact_options all = { .all = true };
	struct store_compacted done;

	may_fail(store_compact(world->store, &all, &done, NULL));
}

/* The process dies, and the machine with what was not synced. */
static void reopen(struct world *world)
{
	struct err err;

	store_close(world->store);
	sim_disk_restart(world->disk, SIM_LOSE_ALL);
	if (open_store(world, world->disk, &world->store, &err))
		fail_msg("reopen: %s", err.message);
}

static void do_something(struct world *world)
{
	switch (draw(world, 10)) {
	case 0:
	case 1:
	case 2:
		append(world);
		break;
	case 3:
		may_fail(store_seal(world->store, NULL));
		break;
	case 4:
		compact(world);
		break;
	case 5:
		world->now_ns += (int64_t)draw(world, 100) * CLOCK_NS_PER_S;
		break;
	case 6:
		if (draw(world, 6) == 0)
			world->now_ns += 3601 * CLOCK_NS_PER_S; /* garbage is looked for */
		if (draw(world, 4) == 0)
			reopen(world);
		break;
	default:
		world->now_ns += CLOCK_NS_PER_S;
		may_fail(store_bucket_step(world->store, NULL)); /* that is the test */
	}
}

/* What the store of the bucket has must be what `stat` said of it when the disk was lost. */
static void check_found(const struct world *world, const struct store_bucket_stat *stat,
			struct store *restored)
{
	uint32_t found[REPORTS];

	assert_int_equal(batches_find(restored, found, REPORTS), 0);
	for (uint32_t n = 0; n < REPORTS; n++) {
		bool is_covered =
			world->acked[n] &&
			(!stat->behind_ns || world->acked_ns[n] < world->now_ns - stat->behind_ns);

		if (found[n] > 1 || (is_covered && !found[n]) || (found[n] && !world->tried[n]))
			fail_msg("report %u: tried %d, acknowledged %d at %lld, covered %d, found "
				 "%u times; behind %lld",
				 n, world->tried[n], world->acked[n], (long long)world->acked_ns[n],
				 is_covered, found[n], (long long)stat->behind_ns);
	}
}

/* Clients send again what they were not told of; nothing counts twice. */
static void check_goes_on(struct world *world, struct store *restored)
{
	struct append_result result;
	uint32_t found[REPORTS];
	struct err err = { 0 };

	for (uint32_t n = 0; n < REPORTS; n++)
		if (batches_append(restored, n, &result, &err))
			fail_msg("append after restore: %s", err.message);
	assert_int_equal(batches_find(restored, found, REPORTS), 0);
	for (uint32_t n = 0; n < REPORTS; n++)
		assert_int_equal(found[n], 1);
	if (store_seal(restored, &err) || store_bucket_step(restored, &err))
		fail_msg("step after restore: %s", err.message);
	world->now_ns += CLOCK_NS_PER_S;
}

static void check_shut_out(struct world *world)
{
	struct append_result result;
	struct err err = { 0 };

	may_fail(batches_append(world->store, 0, &result, NULL)); /* so that there is news */
	may_fail(store_seal(world->store, NULL));
	world->now_ns += CLOCK_NS_PER_S;
	for (int i = 0; i < 3 && store_bucket_step(world->store, &err) != -ERR_BUSY; i++)
		may_fail(store_delete(
			world->store,
			&(struct store_delete){ .selector = SLICE_LITERAL("{nobody=\"x\"}"),
						.to_ns = 1,
						.by = "test" },
			&(uint64_t){ 0 }, NULL));
	assert_int_equal(err.code, ERR_BUSY);
	assert_int_equal(batches_append(world->store, 1, &result, &err), -ERR_READ_ONLY);
}

/* The disk is lost: what comes out of the bucket? Nothing yet, if no manifest was put. */
static void lose_disk(struct world *world)
{
	struct sim_disk *other = sim_disk_new(world->random);
	struct store_bucket_stat stat;
	struct store_restore restored;
	struct store *store;
	struct err err = { 0 };
	int rc;

	store_bucket_stat(world->store, &stat);
	sim_bucket_plan(world->bucket, SIM_BUCKET_WHOLE, 0);
	rc = store_restore(world->bucket, URL, NULL, DIR, sim_disk_vfs(other), &restored, &err);
	if (rc == -ERR_NOT_FOUND && !stat.manifest) {
		for (uint32_t n = 0; n < REPORTS; n++)
			assert_true(!world->acked[n] ||
				    (stat.behind_ns &&
				     world->acked_ns[n] >= world->now_ns - stat.behind_ns));
		sim_disk_free(other);
		return;
	}
	if (rc)
		fail_msg("restore: %s", err.message);
	if (open_store(world, other, &store, &err))
		fail_msg("open what was restored: %s", err.message);
	check_found(world, &stat, store);
	check_goes_on(world, store);
	check_shut_out(world);
	store_close(store);
	sim_disk_free(other);
}

/* Appends, seals, compacts and steps, always in the same order. */
static void work(struct world *world)
{
	for (int i = 0; i < 24; i++) {
		append(world);
		if (i % 4 == 3)
			may_fail(store_seal(world->store, NULL));
		if (i % 9 == 8)
			compact(world);
		world->now_ns += (i == 15 || i == 18 ? 3601 : 3) * CLOCK_NS_PER_S;
		if (i % 3 == 2)
			may_fail(store_bucket_step(world->store, NULL));
	}
}

static void nothing_that_was_said_to_be_there_is_lost(void **state)
{
	(void)state;
	for (enum sim_bucket_fault fault = SIM_BUCKET_REFUSES; fault < SIM_BUCKET_FAULTS; fault++) {
		bool hit = true;

		for (uint64_t at = 1; hit; at += BUILT_WITH_ASAN ? 3 : 1) {
			struct world world;

			begin(&world, at);
			sim_bucket_plan(world.bucket, fault, at);
			work(&world);
			hit = sim_bucket_hit(world.bucket);
			lose_disk(&world);
			end(&world);
		}
	}
}

static uint64_t rounds(uint64_t otherwise)
{
	const char *text = getenv("FIRN_TEST_ROUNDS");

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Another life of the store for each seed, cut at each of its calls to the bucket. */
static void any_life_may_be_cut_anywhere(void **state)
{
	uint64_t count = rounds(BUILT_WITH_ASAN ? 0 : 1), cuts = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= count; seed++) {
		bool hit = true;

		for (uint64_t at = 1; hit; at++) {
			struct world world;

			begin(&world, 1000 + seed);
			sim_bucket_plan(world.bucket,
					(seed + at) % 2 ? SIM_BUCKET_CUT : SIM_BUCKET_CUT_LATE, at);
			for (int i = 0; i < 25; i++)
				do_something(&world);
			hit = sim_bucket_hit(world.bucket);
			cuts += hit;
			lose_disk(&world);
			end(&world);
		}
	}
	print_message("# %llu lives, %llu cuts\n", (unsigned long long)count,
		      (unsigned long long)cuts);
	assert_true(cuts >= count);
}

static void any_order_of_faults_is_survived(void **state)
{
	uint64_t count = rounds(BUILT_WITH_ASAN ? 15 : 60);

	(void)state;
	for (uint64_t seed = 1; seed <= count; seed++) {
		struct world world;

		begin(&world, seed);
		for (int i = 0; i < 120; i++) {
			if (draw(&world, 12) == 0)
				sim_bucket_plan(
					world.bucket,
					(enum sim_bucket_fault)draw(&world, SIM_BUCKET_FAULTS),
					1 + draw(&world, 6));
			do_something(&world);
		}
		lose_disk(&world);
		end(&world);
	}
}

static void the_age_of_what_is_missing_is_told(void **state)
{
	struct store_bucket_stat stat;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 1);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	store_bucket_stat(world.store, &stat);
	assert_true(stat.on && !stat.behind_ns && stat.manifest == 1);
	append(&world);
	world.now_ns += 50 * CLOCK_NS_PER_S;
	append(&world);
	world.now_ns += 7 * CLOCK_NS_PER_S;
	assert_int_equal(store_bucket_step(world.store, &err), 0); /* it is in the log still */
	store_bucket_stat(world.store, &stat);
	assert_int_equal(stat.behind_ns, 57 * CLOCK_NS_PER_S);
	assert_int_equal(store_seal(world.store, &err), 0);
	sim_bucket_plan(world.bucket, SIM_BUCKET_CUT, 1);
	assert_int_equal(store_bucket_step(world.store, &err), -ERR_UNAVAILABLE);
	store_bucket_stat(world.store, &stat);
	assert_int_equal(stat.behind_ns, 57 * CLOCK_NS_PER_S);
	assert_string_not_equal(stat.error, "");
	sim_bucket_plan(world.bucket, SIM_BUCKET_WHOLE, 0);
	world.now_ns += CLOCK_NS_PER_S;
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	store_bucket_stat(world.store, &stat);
	assert_int_equal(stat.behind_ns, 0);
	assert_string_equal(stat.error, "");
	assert_int_equal(stat.saved_at_ns, world.now_ns);
	end(&world);
}

/* Parts that compaction replaced, and what a cut upload left, go an hour after. */
static void garbage_goes(void **state)
{
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 1);
	for (int i = 0; i < 12; i++) {
		append(&world);
		assert_int_equal(store_seal(world.store, &err), 0);
		assert_int_equal(store_bucket_step(world.store, &err), 0);
	}
	assert_int_equal(sim_bucket_count(world.bucket, "/part/"), 12);
	compact(&world);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	assert_int_equal(sim_bucket_count(world.bucket, "/part/"), 13);
	for (int i = 0; i < 2; i++) {
		world.now_ns += 3601 * CLOCK_NS_PER_S;
		assert_int_equal(store_bucket_step(world.store, &err), 0);
	}
	assert_int_equal(sim_bucket_count(world.bucket, "/part/"), 1);
	assert_int_equal(sim_bucket_count(world.bucket, "/state/"), 1);
	assert_int_equal(sim_bucket_count(world.bucket, "/probe/"), 0);
	lose_disk(&world);
	end(&world);
}

static void old_manifests_go(void **state)
{
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 1);
	for (int i = 0; i < 130; i++) {
		struct store_delete order = { .selector = SLICE_LITERAL("{nobody=\"x\"}"),
					      .to_ns = 1,
					      .by = "test" };
		uint64_t number;

		assert_int_equal(store_delete(world.store, &order, &number, &err), 0);
		assert_int_equal(store_bucket_step(world.store, &err), 0);
	}
	assert_int_equal(sim_bucket_count(world.bucket, "/manifest/"), 100);
	end(&world);
}

static void what_was_deleted_stays_deleted(void **state)
{
	struct sim_disk *other = sim_disk_new(5);
	struct store_delete order = { .to_ns = INT64_MAX, .by = "test" };
	struct store_restore restored;
	uint32_t found[REPORTS], sum = 0;
	struct world world;
	uint64_t number;
	struct store *store;
	struct err err = { 0 };

	(void)state;
	begin(&world, 1);
	for (int i = 0; i < 9; i++)
		append(&world);
	assert_int_equal(store_seal(world.store, &err), 0);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	order.selector = SLICE_LITERAL("{service_name=~\".*\"}");
	order.from_ns = (BATCHES_START_S + 3) * CLOCK_NS_PER_S;
	if (store_delete(world.store, &order, &number, &err))
		fail_msg("%s", err.message);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	assert_int_equal(
		store_restore(world.bucket, URL, NULL, DIR, sim_disk_vfs(other), &restored, &err),
		0);
	assert_int_equal(open_store(&world, other, &store, &err), 0);
	batches_find(store, found, REPORTS);
	for (uint32_t n = 0; n < REPORTS; n++)
		sum += found[n];
	assert_int_equal(sum, 3);
	store_close(store);
	sim_disk_free(other);
	end(&world);
}

/* Somebody emptied the bucket: until all is there again, the store says how old what is missing is.
 */
static void an_emptied_bucket_is_behind(void **state)
{
	struct sim_disk *other = sim_disk_new(5);
	struct store_restore restored;
	struct store_bucket_stat stat;
	struct world world;
	struct err err = { 0 };

	(void)state;
	begin(&world, 1);
	append(&world);
	assert_int_equal(store_seal(world.store, &err), 0);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	store_bucket_stat(world.store, &stat);
	assert_int_equal(stat.behind_ns, 0);
	store_close(world.store);
	world.bucket->close(world.bucket);
	world.bucket = sim_bucket_new();
	assert_int_equal(open_store(&world, world.disk, &world.store, &err), 0);
	sim_bucket_plan(world.bucket, SIM_BUCKET_REFUSES, CALLS_TO_ATTACH + 1);
	assert_int_not_equal(store_bucket_step(world.store, &err), 0);
	assert_int_equal(sim_bucket_count(world.bucket, "/part/"), 0);
	store_bucket_stat(world.store, &stat);
	assert_true(stat.behind_ns >= 100 * CLOCK_NS_PER_S);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	store_bucket_stat(world.store, &stat);
	assert_int_equal(stat.behind_ns, 0);
	assert_int_equal(
		store_restore(world.bucket, URL, NULL, DIR, sim_disk_vfs(other), &restored, &err),
		0);
	assert_int_equal(restored.parts, 1);
	sim_disk_free(other);
	end(&world);
}

static void services_without_conditions_are_refused(void **state)
{
	struct world world;
	struct err err = { 0 };

	(void)state;
	begin(&world, 1);
	sim_bucket_ignore_conditions(world.bucket);
	append(&world);
	assert_int_equal(store_bucket_step(world.store, &err), -ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "--object-single-writer"));
	end(&world);
}

struct found_key {
	char text[BUCKET_KEY_BYTES_MAX];
};

static int take_key(void *context, const struct bucket_entry *entry, struct err *err)
{
	struct found_key *found = context;

	(void)err;
	snprintf(found->text, sizeof(found->text), "%.*s", SLICE_FMT(entry->key));
	return 0;
}

/* Other bytes than were put there are not made a store of. */
static void damaged_objects_are_named(void **state)
{
	struct sim_disk *disk = sim_disk_new(5);
	struct store_restore restored;
	struct store_bucket_stat stat;
	struct found_key found = { "" };
	struct strbuf bytes = { 0 };
	struct world world;
	struct err err = { 0 };
	char prefix[64];

	(void)state;
	begin(&world, 1);
	append(&world);
	assert_int_equal(store_seal(world.store, &err), 0);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	store_bucket_stat(world.store, &stat);
	snprintf(prefix, sizeof(prefix), "%s/part/", stat.store);
	assert_int_equal(
		world.bucket->list(world.bucket, prefix, NULL, false, take_key, &found, &err), 0);
	assert_int_equal(world.bucket->get(world.bucket, found.text, 1 << 20, &bytes, &err), 0);
	bytes.data[bytes.len / 2] ^= 1;
	assert_int_equal(
		world.bucket->put(world.bucket, found.text, strbuf_slice(&bytes), false, &err), 0);
	assert_int_equal(
		store_restore(world.bucket, URL, NULL, DIR, sim_disk_vfs(disk), &restored, &err),
		-ERR_CORRUPT);
	assert_non_null(strstr(err.message, found.text));
	strbuf_free(&bytes);
	sim_disk_free(disk);
	end(&world);
}

static void restoring_says_what_it_cannot_do(void **state)
{
	struct sim_disk *disk = sim_disk_new(3), *other = sim_disk_new(4);
	struct store_restore restored;
	struct world world;
	struct store *second;
	struct err err = { 0 };

	(void)state;
	begin(&world, 1);
	assert_int_equal(
		store_restore(world.bucket, URL, NULL, DIR, sim_disk_vfs(disk), &restored, &err),
		-ERR_NOT_FOUND);
	append(&world);
	assert_int_equal(store_seal(world.store, &err), 0);
	assert_int_equal(store_bucket_step(world.store, &err), 0);
	assert_int_equal(store_restore(world.bucket, URL, NULL, DIR, sim_disk_vfs(world.disk),
				       &restored, &err),
			 -ERR_EXISTS);
	assert_int_equal(open_store(&world, other, &second, &err), 0);
	assert_int_equal(store_bucket_step(second, &err), 0);
	assert_int_equal(
		store_restore(world.bucket, URL, NULL, DIR, sim_disk_vfs(disk), &restored, &err),
		-ERR_INVALID);
	assert_non_null(strstr(err.message, "--store"));
	struct store_bucket_stat stat;
	store_bucket_stat(world.store, &stat);
	assert_int_equal(store_restore(world.bucket, URL, stat.store, DIR, sim_disk_vfs(disk),
				       &restored, &err),
			 0);
	assert_int_equal(restored.parts, 1);
	store_close(second);
	sim_disk_free(disk);
	sim_disk_free(other);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_age_of_what_is_missing_is_told),
		cmocka_unit_test(garbage_goes),
		cmocka_unit_test(old_manifests_go),
		cmocka_unit_test(what_was_deleted_stays_deleted),
		cmocka_unit_test(an_emptied_bucket_is_behind),
		cmocka_unit_test(services_without_conditions_are_refused),
		cmocka_unit_test(restoring_says_what_it_cannot_do),
		cmocka_unit_test(damaged_objects_are_named),
		cmocka_unit_test(nothing_that_was_said_to_be_there_is_lost),
		cmocka_unit_test(any_life_may_be_cut_anywhere),
		cmocka_unit_test(any_order_of_faults_is_survived),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT); /* failures are the subject here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
