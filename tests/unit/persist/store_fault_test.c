/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on a disk that fails and crashes: for every operation k of a workload, the machine
 * stops at k, or k fails, and afterwards everything acknowledged is there once, nothing else is,
 * and the store verifies clean.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "batches.h"
#include "sim_disk.h"

#define REPORTS 14
#define DIR "/store"

struct world {
	struct sim_disk *disk;
	int64_t now_ns;
	bool tried[REPORTS], acked[REPORTS];
};

static struct store_options options_of(struct world *world)
{
	return (struct store_options){
		.path = DIR,
		.vfs = sim_disk_vfs(world->disk),
		.clock = batches_clock,
		.clock_context = &world->now_ns,
		.segment_bytes = 32 * 1024,
		.no_background = true,
	};
}

static void begin_world(struct world *world, uint64_t seed)
{
	*world = (struct world){ .disk = sim_disk_new(seed),
				 .now_ns = (BATCHES_START_S + 100) * CLOCK_NS_PER_S };
}

/* Appends, seals in between, and goes on whatever fails: a client that retries later. */
static void work(struct world *world, struct store *store)
{
	struct append_result result;

	for (uint32_t n = 0; n < REPORTS; n++) {
		world->tried[n] = true;
		if (!batches_append(store, n, &result, NULL))
			world->acked[n] = true;
		if (n % 5 == 3)
			may_fail(store_seal(store, NULL)); /* may fail: that is the test */
		else if (n % 5 == 1)
			may_fail(store_tick(store, NULL)); /* likewise; makes a segment ahead */
	}
}

static void run(struct world *world)
{
	struct store_options options = options_of(world);
	struct store *store;

	if (store_open(&options, &store, NULL))
		return;
	work(world, store);
	store_close(store);
}

static void check_found(struct world *world, struct store *store, bool after_retry)
{
	uint32_t found[REPORTS];

	assert_int_equal(batches_find(store, found, REPORTS), 0);
	for (uint32_t n = 0; n < REPORTS; n++) {
		if (found[n] > 1 || (world->acked[n] && !found[n]) ||
		    (found[n] && !world->tried[n]) || (after_retry && !found[n]))
			fail_msg("report %u: tried %d, acknowledged %d, found %u times", n,
				 world->tried[n], world->acked[n], found[n]);
	}
}

static void check_clean(struct world *world)
{
	struct strbuf report = { 0 };
	struct err err = { 0 };

	if (store_verify(DIR, sim_disk_vfs(world->disk), &report, &err))
		fail_msg("verify: %s\n%s", err.message, strbuf_text(&report));
	strbuf_free(&report);
}

static struct store *reopen(struct world *world)
{
	struct store_options options = options_of(world);
	struct store *store;
	struct err err = { 0 };

	if (store_open(&options, &store, &err))
		fail_msg("reopen: %s", err.message);
	return store;
}

/*
 * On a healthy disk again: all is there, a client that repeats everything changes nothing, and
 * what it was told then survives a power loss too.
 */
static void check_recovery(struct world *world)
{
	struct store *store = reopen(world);
	struct append_result result;
	struct err err = { 0 };

	check_found(world, store, false);
	for (uint32_t n = 0; n < REPORTS; n++) {
		world->tried[n] = true;
		if (batches_append(store, n, &result, &err))
			fail_msg("append after recovery: %s", err.message);
		world->acked[n] = true;
	}
	check_found(world, store, true);
	store_close(store);
	sim_disk_restart(world->disk, SIM_LOSE_ALL);
	store = reopen(world);
	check_found(world, store, true);
	if (store_seal(store, &err))
		fail_msg("seal after recovery: %s", err.message);
	check_found(world, store, true);
	store_close(store);
	check_clean(world);
}

/* The sanitizers, which are slow, see each third step; the plain build sees all. */
#define STRIDE (BUILT_WITH_ASAN || BUILT_WITH_TSAN ? 3 : 1)

static void crash_at(uint64_t k, enum sim_loss loss, uint64_t *ret_hit)
{
	struct world world;

	begin_world(&world, k * 31 + loss + 1);
	sim_disk_plan(world.disk, SIM_STOP, k, 0);
	run(&world);
	*ret_hit = sim_disk_hit(world.disk);
	sim_disk_restart(world.disk, loss);
	check_recovery(&world);
	sim_disk_free(world.disk);
}

static void crash_everywhere(enum sim_loss loss)
{
	uint64_t hit = 1;

	for (uint64_t k = 1; hit; k += STRIDE) {
		print_message("# crash at operation %llu\n", (unsigned long long)k);
		crash_at(k, loss, &hit);
	}
}

static void store_survives_power_loss_at_every_step(void **state)
{
	(void)state;
	crash_everywhere(SIM_LOSE_ALL);
}

static void store_survives_torn_writes_at_every_step(void **state)
{
	(void)state;
	crash_everywhere(SIM_LOSE_RANDOM);
}

static void store_survives_a_kill_at_every_step(void **state)
{
	(void)state;
	crash_everywhere(SIM_LOSE_NONE);
}

/* A second crash while recovering from the first, at every step of the recovery. */
static void recovery_survives_crashes(void **state)
{
	(void)state;
	for (uint64_t k = 20; k < 200; k += 37) {
		uint64_t hit = 1;

		for (uint64_t j = 1; hit; j += STRIDE) {
			struct world world;

			begin_world(&world, k * 1000 + j);
			sim_disk_plan(world.disk, SIM_STOP, k, 0);
			run(&world);
			sim_disk_restart(world.disk, SIM_LOSE_RANDOM);
			sim_disk_plan(world.disk, SIM_STOP, j, 0);
			run(&world);
			hit = sim_disk_hit(world.disk) && j < 60;
			sim_disk_restart(world.disk, SIM_LOSE_RANDOM);
			check_recovery(&world);
			sim_disk_free(world.disk);
		}
	}
}

static void fail_everywhere(enum sim_fault fault, int error)
{
	bool hit = true;

	for (uint64_t k = 1; hit; k += STRIDE) {
		struct world world;

		begin_world(&world, k);
		sim_disk_plan(world.disk, fault, k, error);
		run(&world);
		hit = sim_disk_hit(world.disk);
		/* A process ends without power loss, and so does the fault. */
		sim_disk_restart(world.disk, k % 2 ? SIM_LOSE_NONE : SIM_LOSE_ALL);
		check_recovery(&world);
		sim_disk_free(world.disk);
	}
}

static void store_survives_an_io_error_at_every_step(void **state)
{
	(void)state;
	fail_everywhere(SIM_FAIL_ONCE, EIO);
}

static void store_survives_a_dying_disk_at_every_step(void **state)
{
	(void)state;
	fail_everywhere(SIM_FAIL_FOR_EVER, EIO);
}

static void store_survives_a_full_disk_at_every_step(void **state)
{
	(void)state;
	fail_everywhere(SIM_FAIL_FOR_EVER, ENOSPC);
}

static void store_survives_interrupts_and_short_io(void **state)
{
	bool hit = true;

	(void)state;
	for (uint64_t k = 1; hit; k += STRIDE) {
		struct world world;

		begin_world(&world, k);
		sim_disk_plan(world.disk, SIM_SHORT, k, 0);
		run(&world);
		hit = sim_disk_hit(world.disk);
		for (uint32_t n = 0; n < REPORTS; n++)
			assert_true(world.acked[n]); /* half a write is not a failure */
		check_recovery(&world);
		sim_disk_free(world.disk);
	}
}

/* Reads go on, and appends resume by themselves when there is room again. */
static void full_disk_stops_appends_and_nothing_else(void **state)
{
	struct world world;
	struct store_options options;
	struct append_result result;
	struct store *store;
	struct err err = { 0 };
	uint32_t found[REPORTS];

	(void)state;
	begin_world(&world, 7);
	options = options_of(&world);
	assert_int_equal(store_open(&options, &store, &err), 0);
	sim_disk_plan(world.disk, SIM_FAIL_FOR_EVER, 1, ENOSPC);
	assert_int_equal(batches_append(store, 0, &result, &err), -ERR_NO_SPACE);
	assert_int_equal(batches_find(store, found, REPORTS), 0);
	sim_disk_plan(world.disk, SIM_NO_FAULT, 0, 0);
	assert_int_equal(batches_append(store, 0, &result, &err), 0);
	sim_disk_plan(world.disk, SIM_FAIL_FOR_EVER, 1, ENOSPC);
	assert_int_equal(store_seal(store, &err), -ERR_NO_SPACE);
	batches_find(store, found, REPORTS);
	assert_int_equal(found[0], 1);
	sim_disk_plan(world.disk, SIM_NO_FAULT, 0, 0);
	assert_int_equal(store_seal(store, &err), 0);
	batches_find(store, found, REPORTS);
	assert_int_equal(found[0], 1);
	store_close(store);
	check_clean(&world);
	sim_disk_free(world.disk);
}

static void failed_sync_poisons_until_reopened(void **state)
{
	struct world world;
	struct store_options options;
	struct append_result result;
	struct store_stat stat;
	struct store *store;
	struct err err = { 0 };
	uint32_t found[REPORTS];

	(void)state;
	begin_world(&world, 9);
	options = options_of(&world);
	assert_int_equal(store_open(&options, &store, &err), 0);
	assert_int_equal(batches_append(store, 0, &result, &err), 0);
	sim_disk_plan(world.disk, SIM_FAIL_ONCE, 2, EIO); /* write, then sync */
	assert_int_equal(batches_append(store, 1, &result, &err), -ERR_READ_ONLY);
	assert_int_equal(batches_append(store, 2, &result, &err), -ERR_READ_ONLY);
	assert_non_null(strstr(err.message, "sync"));
	assert_int_equal(store_seal(store, &err), -ERR_READ_ONLY);
	batches_find(store, found, REPORTS);
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 0); /* never acknowledged, never shown */
	assert_int_equal(store_stat(store, &stat, &err), 0);
	assert_true(stat.poisoned);
	store_close(store);
	assert_int_equal(store_open(&options, &store, &err), 0);
	assert_int_equal(batches_append(store, 2, &result, &err), 0);
	batches_find(store, found, REPORTS);
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 0);
	store_close(store);
	sim_disk_free(world.disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_survives_power_loss_at_every_step),
		cmocka_unit_test(store_survives_torn_writes_at_every_step),
		cmocka_unit_test(store_survives_a_kill_at_every_step),
		cmocka_unit_test(recovery_survives_crashes),
		cmocka_unit_test(store_survives_an_io_error_at_every_step),
		cmocka_unit_test(store_survives_a_dying_disk_at_every_step),
		cmocka_unit_test(store_survives_a_full_disk_at_every_step),
		cmocka_unit_test(store_survives_interrupts_and_short_io),
		cmocka_unit_test(full_disk_stops_appends_and_nothing_else),
		cmocka_unit_test(failed_sync_poisons_until_reopened),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT); /* failures are the subject here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
