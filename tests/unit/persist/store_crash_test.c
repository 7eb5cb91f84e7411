/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on a disk whose power fails, over and over, at random moments of random lives; and on
 * a disk that lies. The seed of each life is printed; FIRN_SEED is the first one, FIRN_TEST_ROUNDS
 * how many (1,000 and more are for the bench).
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
#include "history.h"
#include "server/persist/store_int.h"
#include "sim_disk.h"

#define DIR "/store"
#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define BEGIN_NS (19000 * DAY_NS)
#define ROUNDS_DEFAULT (BUILT_WITH_ASAN ? 6 : 24)
#define LIVES 4
#define STEPS_MAX 24
#define OPERATIONS_MAX 500 /* of a life, before the power fails */
#define FILES_MAX 64
#define NAME_BYTES 64

struct world {
	struct sim_disk *disk;
	struct store *store; /* NULL: not open */
	struct store_options options;
	int64_t now_ns;
	struct history history;
	uint32_t last_append; /* reports of the batch that came last */
};

static uint64_t number_of(const char *variable, uint64_t fallback)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : fallback;
}

static int64_t clock_of(void *context)
{
	return *(int64_t *)context;
}

static uint32_t dice(struct world *world, uint32_t sides)
{
	return history_dice(&world->history, sides);
}

static void must_open(struct world *world)
{
	struct err err;

	if (store_open(&world->options, &world->store, &err))
		fail_msg("open: %s", err.message);
}

static void close_store(struct world *world)
{
	store_close(world->store);
	world->store = NULL;
}

static void begin(struct world *world, uint64_t seed)
{
	print_message("# seed %llu\n", (unsigned long long)seed);
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
	must_open(world);
}

static void end(struct world *world)
{
	close_store(world);
	history_free(&world->history);
	sim_disk_free(world->disk);
}

static void append(struct world *world, uint32_t count)
{
	int64_t back_ns = dice(world, 5) ? HOUR_NS : 2 * DAY_NS;

	(void)history_append(&world->history, world->store, count, world->now_ns - back_ns,
			     world->now_ns, NULL);
	world->last_append = count;
}

/* One thing that happens to a store; it may fail. */
static void step(struct world *world)
{
	const struct store_compact_options compact = { .all = dice(world, 2) };
	struct store_compacted done;

	world->now_ns += (int64_t)dice(world, 3600) * CLOCK_NS_PER_S;
	switch (dice(world, 10)) {
	case 0:
		may_fail(store_seal(world->store, NULL));
		break;
	case 1:
		may_fail(store_compact(world->store, &compact, &done, NULL));
		break;
	case 2:
		(void)history_delete(&world->history, world->store, dice(world, HISTORY_DELETES),
				     world->now_ns - HOUR_NS, world->now_ns, NULL);
		break;
	case 3:
		may_fail(store_tick(world->store, NULL));
		break;
	default:
		append(world, 1 + dice(world, 6));
		break;
	}
}

static void steps(struct world *world, uint32_t count)
{
	for (uint32_t i = 0; i < count && !sim_disk_hit(world->disk); i++)
		step(world);
}

/* Every life prints its seed; `run` fails the test. */
static void each_seed(uint64_t rounds, void (*run)(struct world *world))
{
	uint64_t first = number_of("FIRN_SEED", 1);

	rounds = number_of("FIRN_TEST_ROUNDS", rounds);
	for (uint64_t seed = first; seed < first + rounds; seed++) {
		struct world world;

		begin(&world, seed);
		run(&world);
		end(&world);
	}
}

/* The power may fail while the store is opened, too. */
static void open_in_spite_of_all(struct world *world)
{
	while (!dice(world, 3)) {
		sim_disk_plan(world->disk, SIM_STOP, 1 + dice(world, 60), 0);
		if (store_open(&world->options, &world->store, NULL))
			world->store = NULL;
		close_store(world);
		sim_disk_restart(world->disk, (enum sim_loss)dice(world, 3));
	}
	must_open(world);
}

static void live(struct world *world)
{
	sim_disk_plan(world->disk, SIM_STOP, 1 + dice(world, OPERATIONS_MAX), 0);
	steps(world, STEPS_MAX);
	close_store(world);
	sim_disk_restart(world->disk, (enum sim_loss)dice(world, 3));
	open_in_spite_of_all(world);
	history_check(&world->history, world->store); /* and what was unclear is known now */
}

static void live_on(struct world *world)
{
	struct strbuf report = { 0 };
	struct err err;

	for (int i = 0; i < LIVES; i++)
		live(world);
	close_store(world);
	sim_disk_restart(world->disk, SIM_LOSE_ALL);
	must_open(world);
	history_check(&world->history, world->store);
	close_store(world);
	if (store_verify(DIR, world->options.vfs, &report, &err))
		fail_msg("verify: %s\n%s", err.message, strbuf_text(&report));
	strbuf_free(&report);
}

static void random_lives_lose_nothing(void **state)
{
	(void)state;
	each_seed(ROUNDS_DEFAULT, live_on);
}

/*
 * A flipped bit in the very last record of the log cannot be told from a write that was cut off;
 * verify has a note where that is.
 */
static bool is_only_the_last_record(const struct world *world, const struct strbuf *report)
{
	return world->history.missing <= world->last_append &&
	       strstr(strbuf_text(report), "ends in a write that was cut off");
}

/* Whatever the disk did, nothing comes out that did not go in, and what is missing was told. */
static void check_what_is_left(struct world *world)
{
	struct strbuf report = { 0 };
	struct err err = { 0 };
	bool complained;

	close_store(world);
	sim_disk_restart(world->disk, SIM_LOSE_ALL);
	complained = store_verify(DIR, world->options.vfs, &report, &err) != 0;
	world->history.disk_lies = true;
	if (store_open(&world->options, &world->store, &err)) {
		world->store = NULL;
		/* A flipped bit may make a newer version of what is not covered by a checksum. */
		assert_true(err.code == ERR_CORRUPT || err.code == ERR_UNSUPPORTED);
		assert_true(complained);
	} else {
		history_check(&world->history, world->store);
		if (world->history.missing && !complained && !world->history.told &&
		    !is_only_the_last_record(world, &report))
			fail_msg("%llu reports are missing and nobody was told",
				 (unsigned long long)world->history.missing);
	}
	strbuf_free(&report);
}

/*
 * A write is lost or lands elsewhere while the store runs. What follows on the log proves that the
 * write had been acknowledged; the very last record of all could not be told from one that was
 * never written, so that one is left alone.
 */
static void live_with_astray_write(struct world *world, enum sim_fault fault)
{
	steps(world, STEPS_MAX / 2);
	sim_disk_plan(world->disk, fault, 1 + dice(world, 100), 0);
	steps(world, STEPS_MAX);
	append(world, 2);
	if (!sim_disk_hit(world->disk))
		sim_disk_plan(world->disk, SIM_NO_FAULT, 0, 0);
	append(world, 2);
	check_what_is_left(world);
}

static void lose_a_write(struct world *world)
{
	live_with_astray_write(world, SIM_LOSE_WRITE);
}

static void misplace_a_write(struct world *world)
{
	live_with_astray_write(world, SIM_MISPLACE_WRITE);
}

static void lost_writes_are_noticed(void **state)
{
	(void)state;
	each_seed(2 * ROUNDS_DEFAULT, lose_a_write);
}

static void misplaced_writes_are_noticed(void **state)
{
	(void)state;
	each_seed(2 * ROUNDS_DEFAULT, misplace_a_write);
}

struct files {
	char names[FILES_MAX][NAME_BYTES];
	size_t count;
};

static void add_file(void *context, const char *name)
{
	struct files *files = context;

	if (files->count < FILES_MAX && strcmp(name, "LOCK") != 0 && strlen(name) < NAME_BYTES)
		snprintf(files->names[files->count++], NAME_BYTES, "%s", name);
}

/* Bits flip in files of all kinds while nobody looks. */
static void flip_some(struct world *world)
{
	const struct vfs *vfs = world->options.vfs;
	struct files files = { .count = 0 };

	assert_int_equal(vfs->list_dir(vfs, DIR, add_file, &files), 0);
	for (uint32_t left = 1 + dice(world, 3); left && files.count; left--) {
		char path[2 * NAME_BYTES];
		uint64_t bytes = 0;

		snprintf(path, sizeof(path), DIR "/%s",
			 files.names[dice(world, (uint32_t)files.count)]);
		if (sim_disk_has(world->disk, path, &bytes) && bytes)
			sim_disk_flip(world->disk, path, dice(world, (uint32_t)bytes),
				      (uint8_t)(1u << dice(world, 8)));
	}
}

static void rot(struct world *world)
{
	steps(world, STEPS_MAX);
	close_store(world);
	flip_some(world);
	check_what_is_left(world);
}

static void flipped_bits_are_noticed(void **state)
{
	(void)state;
	each_seed(4 * ROUNDS_DEFAULT, rot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_lives_lose_nothing),
		cmocka_unit_test(lost_writes_are_noticed),
		cmocka_unit_test(misplaced_writes_are_noticed),
		cmocka_unit_test(flipped_bits_are_noticed),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT); /* failures are the subject here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
