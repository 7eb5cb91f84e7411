/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store under many threads (also run under the thread sanitizer), under kill -9, and against
 * a naive model under random operations. On the real disk, in a fresh directory below TMPDIR.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "batches.h"
#include "store_dir.h"

#define THREADS 6
/* Fewer for sanitizers, which are slow. */
#define IS_SLOW (BUILT_WITH_ASAN || BUILT_WITH_TSAN)
#define PER_THREAD (IS_SLOW ? 30 : 80)
#define KILLS (IS_SLOW ? 2 : 8)
#define MODEL_STEPS (IS_SLOW ? 60 : 300)
#define MODEL_REPORTS 200

static int64_t now_ns = (BATCHES_START_S + 2000) * CLOCK_NS_PER_S;

static struct store *open_at(const char *path, bool background, uint64_t seal_bytes)
{
	struct store_options options = { .path = path,
					 .clock = batches_clock,
					 .clock_context = &now_ns,
					 .no_background = !background,
					 .seal_bytes = seal_bytes };
	struct store *store;
	struct err err = { 0 };

	if (store_open(&options, &store, &err))
		fail_msg("open: %s", err.message);
	return store;
}

static void verify(const char *path)
{
	struct strbuf report = { 0 };
	struct err err = { 0 };

	if (store_verify(path, NULL, &report, &err))
		fail_msg("verify: %s\n%s", err.message, strbuf_text(&report));
	strbuf_free(&report);
}

struct appender {
	struct store *store;
	uint32_t first;
	atomic_bool *stop;
};

static void *append_many(void *context)
{
	const struct appender *appender = context;

	for (uint32_t i = 0; i < PER_THREAD; i++) {
		struct append_result result;
		struct err err = { 0 };
		int rc;

		do /* the clients' part of the bargain */
			rc = batches_append(appender->store, appender->first + i, &result, &err);
		while (rc == -ERR_NO_MEMORY);
		if (rc)
			abort();
	}
	return NULL;
}

static void *look_again_and_again(void *context)
{
	const struct appender *appender = context;
	uint32_t *found = mem_new_array(uint32_t, THREADS * PER_THREAD);
	uint32_t *before = mem_new_array(uint32_t, THREADS * PER_THREAD);

	while (!atomic_load(appender->stop)) {
		struct store_stat stat;

		batches_find(appender->store, found, THREADS * PER_THREAD);
		for (uint32_t n = 0; n < THREADS * PER_THREAD; n++) {
			if (found[n] > 1 || found[n] < before[n])
				abort(); /* twice, or gone again */
			before[n] = found[n];
		}
		if (store_stat(appender->store, &stat, NULL))
			abort();
	}
	free(found);
	free(before);
	return NULL;
}

/* Small memtables: generations end and become parts all the time. */
static void appends_seals_and_snapshots_run_side_by_side(void **state)
{
	char *path = store_dir_new();
	struct store *store = open_at(path, true, 4096);
	pthread_t threads[THREADS], reader;
	struct appender appenders[THREADS];
	atomic_bool stop = false;
	uint32_t *found = mem_new_array(uint32_t, THREADS * PER_THREAD);

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		appenders[i] = (struct appender){ store, i * PER_THREAD, &stop };
		pthread_create(&threads[i], NULL, append_many, &appenders[i]);
	}
	pthread_create(&reader, NULL, look_again_and_again, &appenders[0]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&stop, true);
	pthread_join(reader, NULL);
	store_close(store);
	verify(path);
	store = open_at(path, false, 0);
	batches_find(store, found, THREADS * PER_THREAD);
	for (uint32_t n = 0; n < THREADS * PER_THREAD; n++)
		assert_int_equal(found[n], 1);
	store_close(store);
	free(found);
	store_dir_remove(path);
}

/* Appends from `first` on and writes each number to the pipe once it is acknowledged. */
static void append_until_killed(const char *path, int acks, uint32_t first, uint32_t limit)
{
	struct store *store = open_at(path, true, 8192);

	for (uint32_t n = first; n < limit; n++) {
		struct append_result result;
		int rc;

		do
			rc = batches_append(store, n, &result, NULL);
		while (rc == -ERR_NO_MEMORY);
		if (rc || write(acks, &n, sizeof(n)) != sizeof(n))
			_exit(3);
	}
	_exit(0);
}

static void acknowledged_reports_survive_kill_9(void **state)
{
	enum { LIMIT = 1 << 16 };
	char *path = store_dir_new();
	uint32_t next = 0, *found = mem_new_array(uint32_t, LIMIT);

	(void)state;
	for (int round = 0; round < KILLS; round++) {
		uint32_t until = next + 5 + (uint32_t)round * 7, n, retry = next ? next - 1 : 0;
		int acks[2], status;
		struct store *store;
		pid_t child;

		assert_int_equal(pipe(acks), 0);
		child = fork();
		if (!child)
			append_until_killed(path, acks[1], retry, LIMIT);
		close(acks[1]);
		while (next < until && read(acks[0], &n, sizeof(n)) == sizeof(n))
			next = n + 1;
		kill(child, SIGKILL); /* in the middle of something */
		waitpid(child, &status, 0);
		while (read(acks[0], &n, sizeof(n)) == sizeof(n))
			next = n + 1;
		close(acks[0]);
		assert_true(WIFSIGNALED(status));
		verify(path);
		store = open_at(path, false, 0);
		assert_int_equal(batches_find(store, found, LIMIT), 0);
		for (n = 0; n < next; n++)
			assert_int_equal(found[n], 1);
		for (n = next; n < LIMIT; n++) /* at most the one that was under way */
			assert_in_range(found[n], 0, n == next);
		store_close(store);
	}
	free(found);
	store_dir_remove(path);
}

struct model {
	bool stored[MODEL_REPORTS];
};

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static void compare(const struct model *model, struct store *store)
{
	uint32_t found[MODEL_REPORTS];

	assert_int_equal(batches_find(store, found, MODEL_REPORTS), 0);
	for (uint32_t n = 0; n < MODEL_REPORTS; n++)
		assert_int_equal(found[n], model->stored[n]);
}

static void step(struct model *model, struct store **store, const char *path, uint64_t *random)
{
	uint32_t n = (uint32_t)(next_random(random) % MODEL_REPORTS);
	struct append_result result;
	struct err err = { 0 };

	switch (next_random(random) % 20) {
	case 0:
		assert_int_equal(store_seal(*store, &err), 0);
		break;
	case 1:
		store_close(*store);
		*store = open_at(path, false, 6000);
		break;
	case 2:
		assert_int_equal(store_tick(*store, &err), 0);
		break;
	case 3:
		compare(model, *store);
		break;
	default:
		if (batches_append(*store, n, &result, &err)) {
			assert_int_equal(err.code, ERR_NO_MEMORY);
			assert_int_equal(store_tick(*store, &err), 0);
			break;
		}
		assert_int_equal(result.reports_stored, !model->stored[n]);
		assert_int_equal(result.reports_duplicate, model->stored[n]);
		model->stored[n] = true;
	}
}

static void store_behaves_like_a_set(void **state)
{
	const char *given = getenv("FIRN_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)clock_real_ns() | 1;
	uint64_t random = seed;
	char *path = store_dir_new();
	struct store *store = open_at(path, false, 6000);
	struct model model = { 0 };

	(void)state;
	print_message("# FIRN_TEST_SEED=%llu\n", (unsigned long long)seed);
	for (int i = 0; i < MODEL_STEPS; i++)
		step(&model, &store, path, &random);
	compare(&model, store);
	store_close(store);
	verify(path);
	store_dir_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_seals_and_snapshots_run_side_by_side),
		cmocka_unit_test(acknowledged_reports_survive_kill_9),
		cmocka_unit_test(store_behaves_like_a_set),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
