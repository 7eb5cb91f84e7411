/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables built in processes of their own: what happens when those crash, hang, run out of memory or
 * are not wanted any more. The process is this program again, which misbehaves when the environment
 * says so.
 */
#include "server/resolve/worker/symbol_worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/resolve/sources/symbol_store.h"
#include "workshop.h"

#define VERB "symbol-worker"

struct fixture {
	struct workshop workshop;
	struct symbol_input input;
	char path[256];
	int out;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	*state = fixture;
	workshop_tell(NULL);
	workshop_open(&fixture->workshop);
	fixture->input = (struct symbol_input){ .fd = -1 };
	if (workshop_run(&fixture->workshop, "cc=$(command -v g++ || command -v clang++-14) && "
					     "$cc -O2 -g -Wl,--build-id -o program shapes.cc")) {
		fixture->input.name = workshop_path(&fixture->workshop, "program", fixture->path);
		fixture->input.fd = open(fixture->path, O_RDONLY | O_CLOEXEC);
	}
	fixture->out = memfd_create("table", MFD_CLOEXEC);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	workshop_tell(NULL);
	close(fixture->out);
	if (fixture->input.fd >= 0)
		close(fixture->input.fd);
	workshop_close(&fixture->workshop);
	free(fixture);
	/* Nothing of them is left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return 0;
}

static struct fixture *fixture_of(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->input.fd < 0) {
		printf("# skip: no C++ compiler\n");
		skip();
	}
	return fixture;
}

static int build(struct fixture *fixture, const struct symbol_limits *limits,
		 const _Atomic bool *cancelled, struct err *err)
{
	return symbol_worker_build(&fixture->input, 1, limits, fixture->workshop.directory,
				   cancelled, fixture->out, err);
}

static struct symbol_table *open_built(struct fixture *fixture)
{
	struct symbol_table *table = NULL;
	struct err err = { 0 };

	if (symbol_table_open(fixture->out, "built", &table, &err))
		fail_msg("%s", err.message);
	return table;
}

static void a_worker_makes_the_table(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct symbol_table *table;
	struct err err;

	assert_int_equal(build(fixture, &symbol_limits_default, NULL, &err), 0);
	table = open_built(fixture);
	assert_int_equal(table->origin, SYMBOL_ORIGIN_DWARF);
	assert_int_equal(table->sources_count, 1);
	assert_string_equal(table->note, "");
	symbol_table_free(table);
}

static void a_crash_over_debug_information_leaves_the_symbols(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct symbol_table *table;
	struct err err;

	workshop_tell("crash once");
	assert_int_equal(build(fixture, &symbol_limits_default, NULL, &err), 0);
	table = open_built(fixture);
	assert_int_equal(table->origin, SYMBOL_ORIGIN_SYMBOLS);
	assert_non_null(strstr(table->note, "died (Segmentation fault)"));
	symbol_table_free(table);
}

static void a_forbidden_system_call_leaves_the_symbols(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct symbol_table *table;
	struct err err;

	workshop_tell("forbidden once");
	assert_int_equal(build(fixture, &symbol_limits_default, NULL, &err), 0);
	table = open_built(fixture);
	assert_int_equal(table->origin, SYMBOL_ORIGIN_SYMBOLS);
	assert_non_null(strstr(table->note, "system call that it is not allowed"));
	symbol_table_free(table);
}

static void get(struct symbol_store *store, struct fixture *fixture, struct symbol_table **ret)
{
	struct symbol_sources sources = { .count = 0 };
	struct elf_info info;
	struct err err = { 0 };

	assert_int_equal(elf_read_info(fixture->input.fd, "program", &info, NULL), 0);
	symbol_sources_add(&sources, fcntl(fixture->input.fd, F_DUPFD_CLOEXEC, 0),
			   SLICE_LITERAL("program"));
	if (symbol_store_get(store, slice_of(info.build_id), &sources, NULL, ret, &err))
		fail_msg("%s", err.message);
	symbol_sources_close(&sources);
}

/* Opens the table that is kept, and makes it one by another version of firn. */
static void make_foreign(struct fixture *fixture)
{
	static const uint32_t maker = 1;
	char path[256];
	int fd;

	assert_true(workshop_run(&fixture->workshop, "mv tables/*/*.symbols kept && "
						     "d=$(ls -d tables/*) && echo $d >place"));
	fd = open(workshop_path(&fixture->workshop, "kept", path), O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &maker, sizeof(maker), 20), sizeof(maker));
	assert_int_equal(symbol_table_set_tries(fd, 2, NULL), 0);
	close(fd);
	assert_true(workshop_run(&fixture->workshop, "mv kept $(cat place)/$(readelf -n program | "
						     "sed -n 's/.*Build ID: ..//p').symbols"));
}

static void what_went_wrong_is_tried_again_a_few_times(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct symbol_table *table;
	struct symbol_store *store;
	char path[256];

	assert_int_equal(symbol_store_open(workshop_path(&fixture->workshop, "tables", path),
					   SYMBOL_STORE_BYTES_DEFAULT, &store, NULL),
			 0);
	workshop_tell("crash once");
	for (unsigned tries = 0; tries < 3; tries++) {
		get(store, fixture, &table);
		assert_int_equal(table->tries, tries);
		assert_true(*table->note);
		symbol_table_free(table);
	}
	workshop_tell(NULL);
	get(store, fixture, &table);
	assert_true(*table->note); /* not once more */
	symbol_table_free(table);
	make_foreign(fixture);
	get(store, fixture, &table);
	assert_string_equal(table->note, "");
	assert_int_equal(table->maker, symbol_table_maker());
	assert_int_equal(table->origin, SYMBOL_ORIGIN_DWARF);
	symbol_table_free(table);
	symbol_store_close(store);
}

static void what_a_worker_dies_of_is_the_error(void **state)
{
	static const struct {
		const char *misbehaviour, *message;
	} cases[] = {
		{ "crash", "died (Segmentation fault)" },
		{ "exit", "ended with code 7" },
		{ "abort", "over the memory limit" },
	};
	struct fixture *fixture = fixture_of(state);
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		workshop_tell(cases[i].misbehaviour);
		assert_true(build(fixture, &symbol_limits_default, NULL, &err) < 0);
		if (!strstr(err.message, cases[i].message))
			fail_msg("%s: %s", cases[i].misbehaviour, err.message);
		assert_non_null(strstr(err.message, fixture->path));
	}
}

static void a_worker_that_hangs_is_ended(void **state)
{
	struct symbol_limits limits = symbol_limits_default;
	struct fixture *fixture = fixture_of(state);
	struct err err;

	limits.duration_ns = CLOCK_NS_PER_S / 10;
	workshop_tell("hang");
	assert_int_equal(build(fixture, &limits, NULL, &err), -ERR_LIMIT);
	assert_non_null(strstr(err.message, "not done after"));
}

static void *cancel_soon(void *data)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50 * CLOCK_NS_PER_MS }, NULL);
	atomic_store((_Atomic bool *)data, true);
	return NULL;
}

static void a_worker_that_is_not_wanted_any_more_is_ended(void **state)
{
	struct fixture *fixture = fixture_of(state);
	_Atomic bool cancelled = false;
	int64_t start_ns = clock_monotonic_ns();
	pthread_t thread;
	struct err err;

	workshop_tell("hang");
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancelled), 0);
	assert_int_equal(build(fixture, &symbol_limits_default, &cancelled, &err), -ERR_CANCELLED);
	pthread_join(thread, NULL);
	assert_true(clock_monotonic_ns() - start_ns < 60 * CLOCK_NS_PER_S);
}

static void limits_leave_the_symbols_or_are_errors(void **state)
{
	struct symbol_limits limits = symbol_limits_default;
	struct fixture *fixture = fixture_of(state);
	struct symbol_table *table;
	struct err err;

	limits.entries = 10;
	assert_int_equal(build(fixture, &limits, NULL, &err), 0);
	table = open_built(fixture);
	assert_int_equal(table->origin, SYMBOL_ORIGIN_SYMBOLS);
	assert_non_null(strstr(table->note, "more than 10 entries"));
	symbol_table_free(table);
	assert_int_equal(ftruncate(fixture->out, 0), 0);
	limits.table_bytes = 1000;
	assert_int_equal(build(fixture, &limits, NULL, &err), -ERR_LIMIT);
}

static void files_that_are_cut_off_are_errors(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct err err;

	assert_true(workshop_run(&fixture->workshop, "truncate -s 100 program"));
	assert_true(build(fixture, &symbol_limits_default, NULL, &err) < 0);
}

static void *build_often(void *data)
{
	struct fixture *fixture = data;
	uintptr_t good = 0;

	for (int i = 0; i < 5; i++) {
		int out = memfd_create("table", MFD_CLOEXEC);

		good += !symbol_worker_build(&fixture->input, 1, &symbol_limits_default, NULL, NULL,
					     out, NULL);
		close(out);
	}
	return (void *)good;
}

static void many_threads_build_at_once(void **state)
{
	struct fixture *fixture = fixture_of(state);
	pthread_t threads[6];

	for (size_t i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, build_often, fixture), 0);
	for (size_t i = 0; i < 6; i++) {
		void *good;

		pthread_join(threads[i], &good);
		assert_int_equal((uintptr_t)good, 5);
	}
}

/* As a worker: what a damaged file could make it do. */
static void misbehave(int argc, char **argv)
{
	const char *how = workshop_told();

	if (argc <= WORKSHOP_ARG_NOTE || strcmp(argv[1], VERB))
		return;
	if (!strcmp(how, "crash") || (!strcmp(how, "crash once") && !*argv[WORKSHOP_ARG_NOTE])) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	if (!strcmp(how, "forbidden once") && !*argv[WORKSHOP_ARG_NOTE]) {
		signal(SIGSYS, SIG_DFL);
		raise(SIGSYS);
	}
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "exit"))
		_exit(7);
	while (!strcmp(how, "hang"))
		pause();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_worker_makes_the_table),
		TEST(a_crash_over_debug_information_leaves_the_symbols),
		TEST(a_forbidden_system_call_leaves_the_symbols),
		TEST(what_went_wrong_is_tried_again_a_few_times),
		TEST(what_a_worker_dies_of_is_the_error),
		TEST(a_worker_that_hangs_is_ended),
		TEST(a_worker_that_is_not_wanted_any_more_is_ended),
		TEST(limits_leave_the_symbols_or_are_errors),
		TEST(files_that_are_cut_off_are_errors),
		TEST(many_threads_build_at_once),
	};
	int worker;

	misbehave(argc, argv);
	worker = symbol_worker_main(argc, argv);
	return worker >= 0 ? worker : cmocka_run_group_tests(tests, NULL, NULL);
}
