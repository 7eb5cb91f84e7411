/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store against a naive model: random appends, seals, compactions, deletions, retention and
 * restarts; after each, every report and sums of random ranges are what the model says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "batches.h"
#include "history.h"
#include "server/persist/store_int.h"
#include "sim_disk.h"

#define DIR "/store"
#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define BEGIN_NS (19000 * DAY_NS)

struct world {
	struct sim_disk *disk;
	struct store *store;
	struct store_options options;
	int64_t now_ns;
	struct history history;
};

static int64_t clock_of(void *context)
{
	return *(int64_t *)context;
}

static void must(int rc, const struct err *err)
{
	if (rc)
		fail_msg("%s", err->message);
}

static void open_store(struct world *world)
{
	struct err err;

	must(store_open(&world->options, &world->store, &err), &err);
}

static void begin(struct world *world, uint64_t seed)
{
	*world = (struct world){ .disk = sim_disk_new(seed), .now_ns = BEGIN_NS };
	history_init(&world->history, seed);
	world->options = (struct store_options){
		.path = DIR,
		.vfs = sim_disk_vfs(world->disk),
		.clock = clock_of,
		.clock_context = &world->now_ns,
		.segment_bytes = 32 * 1024,
		.no_background = true,
	};
	open_store(world);
}

static void end(struct world *world)
{
	struct strbuf report = { 0 };
	struct err err;

	store_close(world->store);
	if (store_verify(DIR, world->options.vfs, &report, &err))
		fail_msg("verify: %s\n%s", err.message, strbuf_text(&report));
	strbuf_free(&report);
	history_free(&world->history);
	sim_disk_free(world->disk);
}

static uint32_t dice(struct world *world, uint32_t sides)
{
	return history_dice(&world->history, sides);
}

static void append(struct world *world, uint32_t count)
{
	int64_t back = dice(world, 5) ? HOUR_NS : 2 * DAY_NS;
	struct err err;

	must(history_append(&world->history, world->store, count, world->now_ns - back,
			    world->now_ns, &err),
	     &err);
}

static void compact(struct world *world, bool all)
{
	const struct store_compact_options options = { .all = all };
	struct store_compacted done;
	struct err err;

	must(store_compact(world->store, &options, &done, &err), &err);
}

static void delete_some(struct world *world)
{
	int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
	struct err err;

	if (dice(world, 3)) {
		from_ns = world->now_ns - (int64_t)dice(world, 100000) * CLOCK_NS_PER_S;
		to_ns = from_ns + (int64_t)(1 + dice(world, 50000)) * CLOCK_NS_PER_S;
	}
	must(history_delete(&world->history, world->store, dice(world, HISTORY_DELETES), from_ns,
			    to_ns, &err),
	     &err);
}

static void reopen(struct world *world)
{
	store_close(world->store);
	if (dice(world, 2))
		sim_disk_restart(world->disk, SIM_LOSE_ALL);
	open_store(world);
}

static void check_sums(struct world *world)
{
	int64_t from_ns = world->now_ns - 3 * DAY_NS, to_ns = world->now_ns;

	if (dice(world, 3)) {
		from_ns += (int64_t)dice(world, 2 * 86400) * CLOCK_NS_PER_S;
		to_ns -= (int64_t)dice(world, 86400) * CLOCK_NS_PER_S;
	}
	if (from_ns < to_ns)
		history_check_sums(&world->history, world->store, from_ns, to_ns, dice(world, 2));
}

static void step(struct world *world)
{
	struct err err;

	switch (dice(world, 12)) {
	case 0:
	case 1:
	case 2:
	case 3:
		append(world, 1 + dice(world, 12));
		break;
	case 4:
	case 5:
		must(store_seal(world->store, &err), &err);
		break;
	case 6:
	case 7:
		compact(world, false);
		break;
	case 8:
		compact(world, true);
		break;
	case 9:
		if (dice(world, 3) == 0)
			delete_some(world);
		break;
	case 10:
		reopen(world);
		break;
	default:
		world->now_ns += (int64_t)dice(world, 4 * 3600) * CLOCK_NS_PER_S;
	}
}

static uint32_t rounds(uint32_t by_default)
{
	const char *text = getenv("FIRN_TEST_ROUNDS");

	return text ? (uint32_t)strtoul(text, NULL, 10) : by_default;
}

static void store_is_what_the_model_says_whatever_is_done_to_it(void **state)
{
	uint64_t rollups = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= rounds(BUILT_WITH_ASAN ? 2 : 7); seed++) {
		struct world world;

		print_message("# seed %u\n", seed);
		begin(&world, seed);
		for (uint32_t i = 0; i < 60; i++) {
			step(&world);
			history_check(&world.history, world.store);
			check_sums(&world);
		}
		compact(&world, true);
		history_check(&world.history, world.store);
		for (uint32_t i = 0; i < 10; i++)
			check_sums(&world);
		rollups += world.history.rollups_seen;
		end(&world);
	}
	print_message("# %llu segments of roll-ups answered\n", (unsigned long long)rollups);
	assert_true(rollups > 20);
}

/* Dense reports, so that roll-ups are worth it at every level. */
static void rollups_answer_as_raw_reports_do(void **state)
{
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 99);
	for (uint32_t i = 0; i < 60; i++) {
		world.now_ns += HOUR_NS;
		must(history_append(&world.history, world.store, 120, world.now_ns - HOUR_NS,
				    world.now_ns, &err),
		     &err);
		must(store_seal(world.store, &err), &err);
		compact(&world, false);
	}
	for (uint32_t i = 0; i < 60; i++)
		check_sums(&world);
	assert_true(world.history.rollups_seen > 100);
	history_check(&world.history, world.store);
	/* A deletion counts at once, though sums on the disk hold what it means. */
	must(history_delete(&world.history, world.store, 0, world.now_ns - 30 * HOUR_NS,
			    world.now_ns - HOUR_NS / 2, &err),
	     &err);
	for (uint32_t i = 0; i < 30; i++)
		check_sums(&world);
	compact(&world, false);
	for (uint32_t i = 0; i < 30; i++)
		check_sums(&world);
	end(&world);
}

static void deleted_bytes_leave_the_disk_with_compaction(void **state)
{
	struct store_deletes deletes;
	struct store_stat before, after;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 5);
	for (uint32_t i = 0; i < 20; i++)
		append(&world, 50);
	must(store_seal(world.store, &err), &err);
	must(store_stat(world.store, &before, &err), &err);
	append(&world, 50); /* in memory still */
	for (uint32_t kind = 0; kind < HISTORY_DELETES; kind++)
		must(history_delete(&world.history, world.store, kind, INT64_MIN, INT64_MAX, &err),
		     &err);
	history_check(&world.history, world.store);
	append(&world, 50); /* later ones stay */
	history_check(&world.history, world.store);
	compact(&world, false);
	history_check(&world.history, world.store);
	must(store_stat(world.store, &after, &err), &err);
	assert_true(after.rows < before.rows / 2);
	store_deletes(world.store, NULL, &deletes);
	assert_int_equal(deletes.count, HISTORY_DELETES);
	for (size_t i = 0; i < deletes.count; i++) {
		assert_true(deletes.items[i].done_ns > 0);
		assert_string_equal(deletes.items[i].by, "test");
	}
	store_deletes_free(&deletes);
	reopen(&world);
	history_check(&world.history, world.store);
	store_deletes(world.store, NULL, &deletes);
	assert_int_equal(deletes.count, HISTORY_DELETES);
	store_deletes_free(&deletes);
	end(&world);
}

static void deletions_that_make_no_sense_are_refused(void **state)
{
	static const char *const selectors[] = { "", "{}", "{comm=", "x:y" };
	struct world world;

	(void)state;
	begin(&world, 5);
	for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
		struct store_delete order = { .selector = slice_of(selectors[i]),
					      .to_ns = 1,
					      .by = "test" };
		uint64_t number;
		struct err err;

		assert_int_equal(store_delete(world.store, &order, &number, &err), -ERR_INVALID);
	}
	{
		struct store_delete order = { .selector = SLICE_LITERAL("{comm=\"a\"}"),
					      .from_ns = 5,
					      .to_ns = 5,
					      .by = "test" };
		uint64_t number;
		struct err err;

		assert_int_equal(store_delete(world.store, &order, &number, &err), -ERR_INVALID);
		assert_non_null(strstr(err.message, "range"));
	}
	end(&world);
}

static void retention_takes_old_reports_and_no_others(void **state)
{
	(void)state;
	for (uint32_t seed = 200; seed < 204; seed++) {
		struct world world;
		struct err err;

		begin(&world, seed);
		store_close(world.store);
		world.options.retention_ns = 2 * DAY_NS;
		open_store(&world);
		for (uint32_t i = 0; i < 80; i++) {
			world.now_ns += (int64_t)dice(&world, 2 * 3600) * CLOCK_NS_PER_S;
			must(history_append(&world.history, world.store, 5, world.now_ns - HOUR_NS,
					    world.now_ns, &err),
			     &err);
			if (!dice(&world, 3))
				must(store_seal(world.store, &err), &err);
			if (!dice(&world, 3))
				compact(&world, dice(&world, 2));
			must(store_tick(world.store, &err), &err);
			world.history.forgotten_before_ns = world.now_ns - 2 * DAY_NS;
			history_check(&world.history, world.store);
		}
		end(&world);
	}
}

static void scrubbing_finds_a_flipped_bit_and_answers_say_so(void **state)
{
	const struct store_query query = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct store_snapshot snapshot;
	struct world world;
	struct err err;
	bool more = true;

	(void)state;
	begin(&world, 7);
	append(&world, 40);
	must(store_seal(world.store, &err), &err);
	append(&world, 40);
	must(store_seal(world.store, &err), &err);
	for (int i = 0; more; i++) {
		must(store_scrub(world.store, &more, &err), &err);
		assert_true(i < 3);
	}
	assert_true(sim_disk_flip(world.disk, DIR "/part-000002.firn", 200, 4));
	must(store_scrub(world.store, &more, &err), &err); /* not due */
	world.now_ns += 2 * STORE_SCRUB_NS;
	must(store_scrub(world.store, &more, &err), &err);
	assert_true(more);
	assert_int_equal(store_scrub(world.store, &more, &err), -ERR_CORRUPT);
	must(store_tick(world.store, &err), &err);
	assert_true(sim_disk_has(world.disk, DIR "/quarantine/part-000002.firn", NULL));
	must(store_snapshot(world.store, &query, &snapshot, &err), &err);
	assert_int_equal(snapshot.parts_unreadable, 1);
	store_snapshot_release(world.store, &snapshot);
	compact(&world, true); /* goes on without it */
	store_close(world.store);
	history_free(&world.history);
	sim_disk_free(world.disk);
}

static uint64_t unreadable_parts(struct world *world)
{
	const struct store_query query = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct store_snapshot snapshot;
	uint64_t count;
	struct err err;

	must(store_snapshot(world->store, &query, &snapshot, &err), &err);
	count = snapshot.parts_unreadable;
	store_snapshot_release(world->store, &snapshot);
	return count;
}

/* Two parts, and the file of one is gone. */
static void begin_without_a_file(struct world *world, uint64_t seed)
{
	struct err err;

	begin(world, seed);
	for (int i = 0; i < 2; i++) {
		append(world, 40);
		must(store_seal(world->store, &err), &err);
	}
	assert_int_equal(world->options.vfs->unlink(world->options.vfs, DIR "/part-000002.firn"),
			 0);
}

static void end_without_a_file(struct world *world)
{
	assert_int_equal(unreadable_parts(world), 1);
	store_close(world->store);
	history_free(&world->history);
	sim_disk_free(world->disk);
}

static void scrubbing_finds_a_missing_file_once(void **state)
{
	struct world world;
	struct err err;
	bool more = true;
	int found = 0;

	(void)state;
	begin_without_a_file(&world, 7);
	for (int i = 0; more; i++) {
		int rc = store_scrub(world.store, &more, &err);

		found += rc == -ERR_CORRUPT;
		assert_true(!rc || (rc == -ERR_CORRUPT && strstr(err.message, "missing")));
		must(store_tick(world.store, &err), &err); /* sets it aside */
		assert_true(i < 3);
	}
	assert_int_equal(found, 1);
	compact(&world, true); /* goes on without it */
	end_without_a_file(&world);
}

static void compaction_goes_on_without_a_missing_file(void **state)
{
	const struct store_compact_options options = { .all = true };
	struct store_compacted done;
	struct world world;
	struct err err;

	(void)state;
	begin_without_a_file(&world, 7);
	must(store_compact(world.store, &options, &done, &err), &err);
	assert_int_equal(done.parts_damaged, 1);
	must(store_compact(world.store, &options, &done, &err), &err);
	assert_int_equal(done.parts_damaged, 0); /* it is known */
	end_without_a_file(&world);
}

static void a_reader_beside_a_server_keeps_what_it_opened(void **state)
{
	struct store_options options;
	struct store *reader;
	struct world world;
	struct err err;

	(void)state;
	begin(&world, 11);
	for (uint32_t i = 0; i < 4; i++) {
		append(&world, 20);
		must(store_seal(world.store, &err), &err);
	}
	options = world.options;
	options.read_only = true;
	must(store_open(&options, &reader, &err), &err);
	compact(&world, true);
	assert_false(sim_disk_has(world.disk, DIR "/part-000001.firn", NULL));
	history_check(&world.history, reader);
	history_check(&world.history, world.store);
	store_close(reader);
	end(&world);
}

/* Crashes. */

static void work(struct world *world)
{
	const struct store_compact_options options = { .all = true };
	struct store_compacted done;

	for (uint32_t i = 0; i < 3; i++) {
		world->now_ns += 2 * HOUR_NS;
		(void)history_append(&world->history, world->store, 6, world->now_ns - HOUR_NS,
				     world->now_ns, NULL);
		may_fail(store_seal(world->store, NULL)); /* may fail: that is the test */
	}
	(void)history_delete(&world->history, world->store, 0, INT64_MIN, INT64_MAX, NULL);
	may_fail(store_compact(world->store, &options, &done, NULL));
	(void)history_append(&world->history, world->store, 6, world->now_ns - HOUR_NS,
			     world->now_ns, NULL);
	(void)history_delete(&world->history, world->store, 3, INT64_MIN, world->now_ns, NULL);
	may_fail(store_compact(world->store, &options, &done, NULL));
}

static bool break_at(uint64_t k, enum sim_fault fault, int error, enum sim_loss loss)
{
	struct world world;
	bool hit;

	begin(&world, k * 4 + loss);
	sim_disk_plan(world.disk, fault, k, error);
	work(&world);
	hit = sim_disk_hit(world.disk);
	store_close(world.store);
	sim_disk_restart(world.disk, loss);
	open_store(&world);
	history_check(&world.history, world.store); /* and what was unclear is known now */
	compact(&world, true);
	history_check(&world.history, world.store);
	history_check_sums(&world.history, world.store, INT64_MIN, INT64_MAX, true);
	store_close(world.store);
	sim_disk_restart(world.disk, SIM_LOSE_ALL);
	open_store(&world);
	history_check(&world.history, world.store);
	end(&world);
	return hit;
}

/* Every step with FIRN_TEST_ROUNDS set; else steps that differ from kind to kind of loss, and fewer
 * for the sanitizer, which is slow. */
static uint64_t stride(void)
{
	return getenv("FIRN_TEST_ROUNDS") ? 1 : BUILT_WITH_ASAN ? 57 : 19;
}

static void compaction_and_deletion_survive_a_cut_at_every_step(void **state)
{
	(void)state;
	for (int loss = SIM_LOSE_ALL; loss <= SIM_LOSE_RANDOM; loss++) {
		uint64_t k = 1 + (uint64_t)loss * stride() / 3;

		for (; break_at(k, SIM_STOP, 0, (enum sim_loss)loss); k += stride())
			print_message("# cut at operation %llu\n", (unsigned long long)k);
	}
}

static void compaction_and_deletion_survive_failing_operations(void **state)
{
	static const int errors[] = { 5 /* EIO */, 28 /* ENOSPC */ };

	(void)state;
	for (size_t e = 0; e < 2; e++)
		for (uint64_t k = 1 + e; break_at(k, SIM_FAIL_ONCE, errors[e], SIM_LOSE_NONE);
		     k += stride())
			print_message("# error %d at operation %llu\n", errors[e],
				      (unsigned long long)k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_is_what_the_model_says_whatever_is_done_to_it),
		cmocka_unit_test(rollups_answer_as_raw_reports_do),
		cmocka_unit_test(deleted_bytes_leave_the_disk_with_compaction),
		cmocka_unit_test(deletions_that_make_no_sense_are_refused),
		cmocka_unit_test(retention_takes_old_reports_and_no_others),
		cmocka_unit_test(a_reader_beside_a_server_keeps_what_it_opened),
		cmocka_unit_test(scrubbing_finds_a_flipped_bit_and_answers_say_so),
		cmocka_unit_test(scrubbing_finds_a_missing_file_once),
		cmocka_unit_test(compaction_goes_on_without_a_missing_file),
		cmocka_unit_test(compaction_and_deletion_survive_a_cut_at_every_step),
		cmocka_unit_test(compaction_and_deletion_survive_failing_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
