/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every kind of store promises, checked with the same steps and the same naive model
 * (tests/unit/persist/history.h): the store on disk, and ClickHouse, whose engine the test starts
 * as a library behind its HTTP interface (tests/system/clickhouse_server.py). What only one of them
 * does (crashes at each step, scrubbing, compaction) is tested elsewhere.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../persist/batches.h"
#include "../persist/history.h"
#include "../persist/sim_disk.h"
#include "base/mem.h"
#include "server/clickhouse/ch_schema.h"
#include "server/clickhouse/ch_store.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define STEPS 20     /* each with a look at every report */
#define QUESTIONS 60 /* about sums, of each store */

/* A kind of store: opened any number of times over the same profiles. */
struct world {
	const struct kind *kind;
	struct store *store;
	struct history history;
	int64_t now_ns;
	struct sim_disk *disk;
	char database[32];
};

struct kind {
	const char *name;
	bool (*begin)(struct world *world); /* makes a place for profiles; false: not here */
	int (*open)(struct world *world, struct store **ret, struct err *err);
	void (*end)(struct world *world);
};

static void must(int rc, const struct err *err)
{
	if (rc)
		fail_msg("%s", err->message);
}

/* The store on disk. */

static bool disk_begin(struct world *world)
{
	world->disk = sim_disk_new(world->history.random);
	return true;
}

static int disk_open(struct world *world, struct store **ret, struct err *err)
{
	const struct store_options options = { .path = "/store",
					       .vfs = sim_disk_vfs(world->disk),
					       .clock = batches_clock,
					       .clock_context = &world->now_ns,
					       .segment_bytes = 32 * 1024,
					       .no_background = true };

	return store_open(&options, ret, err);
}

static void disk_end(struct world *world)
{
	sim_disk_free(world->disk);
}

/* ClickHouse: one process for all tests, a database for each. */

static struct {
	pid_t pid;
	char folder[64], url[512];
	const char *cluster; /* of an old ClickHouse; NULL: the library */
	bool is_tried;
	unsigned databases;
} engine;

/* Its library may not be installed: then it ends, and prints no port. */
static void start_engine(void)
{
	const char *tests = getenv("FIRN_TESTS");
	char script[4096], port[16] = "";
	ssize_t got = 0;
	int out[2];

	engine.is_tried = true;
	engine.cluster = getenv("FIRN_SUITE_CLUSTER");
	if (engine.cluster) {
		snprintf(engine.url, sizeof(engine.url), "%s", getenv("FIRN_SUITE_CLICKHOUSE"));
		return;
	}
	if (!tests)
		return;
	snprintf(script, sizeof(script), "%s/system/clickhouse_server.py", tests);
	snprintf(engine.folder, sizeof(engine.folder), "/tmp/firn-suite-XXXXXX");
	assert_non_null(mkdtemp(engine.folder));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	engine.pid = fork();
	assert_true(engine.pid >= 0);
	if (!engine.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execlp("python3", "python3", script, engine.folder, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	for (size_t at = 0; at + 1 < sizeof(port); at += (size_t)got) {
		got = read(out[0], port + at, sizeof(port) - 1 - at);
		if (got <= 0 || memchr(port, '\n', at + (size_t)got))
			break;
	}
	close(out[0]);
	if (atoi(port) > 0)
		snprintf(engine.url, sizeof(engine.url), "http://127.0.0.1:%d", atoi(port));
}

static int stop_engine(void **state)
{
	char command[128];

	(void)state;
	if (!engine.pid)
		return 0;
	kill(engine.pid, SIGKILL);
	waitpid(engine.pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf %s", engine.folder);
	return system(command);
}

static struct ch_client *new_client(const char *database)
{
	const struct clickhouse_options options = { .url = engine.url, .database = database };
	struct ch_client *client;
	struct err err;

	must(ch_client_new(&options, &client, &err), &err);
	return client;
}

static bool clickhouse_begin(struct world *world)
{
	struct ch_client *client;
	struct strbuf sql = { 0 };
	struct err err;

	if (!engine.is_tried)
		start_engine();
	if (!engine.url[0])
		return false;
	snprintf(world->database, sizeof(world->database), "suite_%u", ++engine.databases);
	strbuf_addf(&sql, "CREATE DATABASE %s", world->database);
	if (engine.cluster)
		strbuf_addf(&sql, " ON CLUSTER '%s'", engine.cluster);
	client = new_client(NULL);
	must(ch_run(client, strbuf_slice(&sql), 60 * CLOCK_NS_PER_S, &err), &err);
	ch_client_free(client);
	strbuf_free(&sql);
	client = new_client(world->database);
	must(ch_schema_migrate(client, engine.cluster, "test", &err), &err);
	ch_client_free(client);
	return true;
}

static int clickhouse_open(struct world *world, struct store **ret, struct err *err)
{
	const struct ch_store_options options = {
		.clickhouse = { .url = engine.url, .database = world->database },
	};

	return ch_store_open(&options, ret, err);
}

static void clickhouse_end(struct world *world)
{
	(void)world; /* the databases go with the process */
}

static const struct kind disk = { "disk", disk_begin, disk_open, disk_end };
static const struct kind clickhouse = { "ClickHouse", clickhouse_begin, clickhouse_open,
					clickhouse_end };

/* Worlds. */

/* ClickHouse's servers have the clock of the system, so everything lies before now. */
static void begin(struct world *world, const struct kind *kind, uint64_t seed)
{
	struct err err;

	*world = (struct world){ .kind = kind };
	history_init(&world->history, seed);
	world->now_ns = (clock_real_ns() / HOUR_NS - 60) * HOUR_NS;
	if (!kind->begin(world)) {
		history_free(&world->history);
		print_message("# skip: ClickHouse's library is not installed: npm ci in "
			      "tests/e2e\n");
		skip();
	}
	must(kind->open(world, &world->store, &err), &err);
}

static void end(struct world *world)
{
	store_close(world->store);
	world->kind->end(world);
	history_free(&world->history);
}

static uint32_t dice(struct world *world, uint32_t sides)
{
	return history_dice(&world->history, sides);
}

static void append(struct world *world, struct store *store, uint32_t count)
{
	int64_t back = dice(world, 5) ? HOUR_NS : DAY_NS;
	struct err err;

	must(history_append(&world->history, store, count, world->now_ns - back, world->now_ns,
			    &err),
	     &err);
}

static void ask(struct world *world)
{
	int64_t from_ns = world->now_ns - 3 * DAY_NS, to_ns = world->now_ns;

	if (dice(world, 3)) {
		from_ns += (int64_t)dice(world, 2 * 86400) * CLOCK_NS_PER_S;
		to_ns -= (int64_t)dice(world, 86400) * CLOCK_NS_PER_S;
	}
	if (from_ns < to_ns)
		history_check_sums(&world->history, world->store, from_ns, to_ns, dice(world, 2));
}

/* Of whole series or of a span of time; it counts at once. */
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
	struct err err;

	store_close(world->store);
	must(world->kind->open(world, &world->store, &err), &err);
}

static void step(struct world *world)
{
	switch (dice(world, 12)) {
	case 0:
		delete_some(world);
		break;
	case 1:
		reopen(world);
		break;
	case 2:
	case 3:
		if (world->now_ns < clock_real_ns() - 3 * HOUR_NS)
			world->now_ns += (int64_t)dice(world, 2 * 3600) * CLOCK_NS_PER_S;
		break;
	default:
		append(world, world->store, 1 + dice(world, 12));
	}
}

/* The promises, for a store of any kind. */

/* Every report, one by one, after each step; and sums, by stack, of random ranges. */
static void is_what_the_model_says(const struct kind *kind)
{
	struct world world;

	begin(&world, kind, 3);
	for (uint32_t i = 0; i < STEPS; i++) {
		step(&world);
		history_check(&world.history, world.store);
		ask(&world);
	}
	for (uint32_t i = STEPS; i < QUESTIONS; i++)
		ask(&world);
	assert_true(world.history.count > 30);
	end(&world);
}

/* What comes twice counts once: at once, and after the store was opened again. */
static void duplicates_count_once(const struct kind *kind)
{
	struct append_result result;
	uint32_t found[8] = { 0 };
	struct world world;
	struct err err;

	begin(&world, kind, 4);
	world.now_ns = (BATCHES_START_S + 100) * CLOCK_NS_PER_S;
	for (int round = 0; round < 3; round++) {
		for (uint32_t n = 0; n < 8; n++)
			must(batches_append(world.store, n, &result, &err), &err);
		if (round)
			reopen(&world);
	}
	assert_int_equal(batches_find(world.store, found, 8), 0);
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(found[n], 1);
	end(&world);
}

static void nonsense_is_refused(const struct kind *kind)
{
	static const char *const selectors[] = { "", "{}", "{comm=", "x:y" };
	struct world world;

	begin(&world, kind, 5);
	append(&world, world.store, 20);
	for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
		struct store_delete order = { .selector = slice_of(selectors[i]),
					      .to_ns = 1,
					      .by = "test" };
		uint64_t number;
		struct err err;

		assert_int_equal(store_delete(world.store, &order, &number, &err), -ERR_INVALID);
	}
	history_check(&world.history, world.store);
	end(&world);
}

/* Who ordered what stays on record; later reports of the same series are kept. */
static void deletions_are_on_record(const struct kind *kind)
{
	struct store_deletes deletes;
	struct world world;
	struct err err;

	begin(&world, kind, 6);
	append(&world, world.store, 60);
	for (uint32_t number = 0; number < HISTORY_DELETES; number++)
		must(history_delete(&world.history, world.store, number, INT64_MIN, INT64_MAX,
				    &err),
		     &err);
	history_check(&world.history, world.store);
	append(&world, world.store, 60);
	reopen(&world);
	history_check(&world.history, world.store);
	store_deletes(world.store, NULL, &deletes);
	assert_int_equal(deletes.count, HISTORY_DELETES);
	for (size_t i = 0; i < deletes.count; i++)
		assert_string_equal(deletes.items[i].by, "test");
	store_deletes_free(&deletes);
	end(&world);
}

static void statistics_count_what_is_there(const struct kind *kind)
{
	struct store_stat stat;
	struct world world;
	uint64_t rows = 0;
	struct err err;

	begin(&world, kind, 7);
	for (uint32_t i = 0; i < 4; i++)
		append(&world, world.store, 10);
	for (size_t i = 0; i < world.history.count; i++)
		rows += world.history.reports[i].rows_count;
	must(store_stat(world.store, &stat, &err), &err);
	assert_int_equal(stat.reports, world.history.count);
	assert_int_equal(stat.rows, rows);
	end(&world);
}

#define OF_BOTH(promise)                                                                           \
	static void disk_##promise(void **state)                                                   \
	{                                                                                          \
		(void)state;                                                                       \
		promise(&disk);                                                                    \
	}                                                                                          \
	static void clickhouse_##promise(void **state)                                             \
	{                                                                                          \
		(void)state;                                                                       \
		promise(&clickhouse);                                                              \
	}

OF_BOTH(is_what_the_model_says)
OF_BOTH(duplicates_count_once)
OF_BOTH(nonsense_is_refused)
OF_BOTH(deletions_are_on_record)
OF_BOTH(statistics_count_what_is_there)

#define TESTS(promise) cmocka_unit_test(disk_##promise), cmocka_unit_test(clickhouse_##promise)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TESTS(is_what_the_model_says),
		TESTS(duplicates_count_once),
		TESTS(nonsense_is_refused),
		TESTS(deletions_are_on_record),
		TESTS(statistics_count_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, stop_engine);
}
