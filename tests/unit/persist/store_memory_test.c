/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in a process that is refused memory: at the k-th allocation of a life, and at all that
 * follow, malloc says no. The process may die of it; what it had acknowledged is there afterwards,
 * nothing else is, and the files verify clean.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "batches.h"
#include "server/persist/store_admin.h"
#include "store_dir.h"

#define REPORTS 12u
#define FORKS 40u /* allocations that are tried to fail, spread over a life */

#define OWN_MALLOC (!BUILT_WITH_ASAN && !BUILT_WITH_TSAN) /* the sanitizer's own are in force */

#if OWN_MALLOC
static _Atomic uint64_t allocations;
static _Atomic uint64_t refuse_from = UINT64_MAX;

/* glibc's allocator under the names that it keeps for those who wrap it. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool is_refused(void)
{
	return ++allocations >= refuse_from;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(old, size);
}

static int64_t now_ns = (BATCHES_START_S + 2000) * CLOCK_NS_PER_S;

static struct store_options options_of(const char *path)
{
	return (struct store_options){ .path = path,
				       .clock = batches_clock,
				       .clock_context = &now_ns,
				       .no_background = true };
}

/* Appends, seals, compacts; tells what was acknowledged. Returns how many allocations that took. */
static uint64_t live(const char *path, int acknowledged)
{
	const struct store_compact_options all = { .all = true };
	struct store_options options = options_of(path);
	struct store_compacted compacted;
	struct append_result result;
	struct store *store;

	allocations = 0;
	if (store_open(&options, &store, NULL))
		return allocations;
	for (uint32_t n = 0; n < REPORTS; n++) {
		if (!batches_append(store, n, &result, NULL) &&
		    write(acknowledged, &n, sizeof(n)) != sizeof(n))
			_exit(1);
		if (n % 4 == 3)
			may_fail(store_seal(store, NULL));
	}
	may_fail(store_compact(store, &all, &compacted, NULL));
	store_close(store);
	return allocations;
}

static void check(const char *path, const bool *acknowledged)
{
	struct store_options options = options_of(path);
	struct strbuf report = { 0 };
	uint32_t found[REPORTS];
	struct store *store;
	struct err err = { 0 };

	if (store_open(&options, &store, &err))
		fail_msg("open: %s", err.message);
	assert_int_equal(batches_find(store, found, REPORTS), 0);
	for (uint32_t n = 0; n < REPORTS; n++)
		if (found[n] > 1 || (acknowledged[n] && !found[n]))
			fail_msg("report %u: acknowledged %d, found %u times", n, acknowledged[n],
				 found[n]);
	store_close(store);
	if (store_verify(path, NULL, &report, &err))
		fail_msg("verify: %s\n%s", err.message, strbuf_text(&report));
	strbuf_free(&report);
}

/* A life in a process of its own. Returns its number of allocations when it came to its end. */
static uint64_t live_and_check(uint64_t from)
{
	char *path = store_dir_new();
	bool acknowledged[REPORTS] = { false };
	uint64_t needed = 0;
	int acks[2], ends[2], status;
	uint32_t n;
	pid_t child;

	assert_int_equal(pipe(acks), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr)) /* it says why it dies */
			_exit(1);
		refuse_from = from;
		needed = live(path, acks[1]);
		refuse_from = UINT64_MAX;
		_exit(write(ends[1], &needed, sizeof(needed)) != sizeof(needed));
	}
	close(acks[1]);
	close(ends[1]);
	waitpid(child, &status, 0);
	while (read(acks[0], &n, sizeof(n)) == sizeof(n))
		acknowledged[n] = true;
	if (read(ends[0], &needed, sizeof(needed)) != sizeof(needed))
		needed = 0;
	close(acks[0]);
	close(ends[0]);
	assert_true(WIFEXITED(status) || WTERMSIG(status) == SIGABRT);
	if (access(path, F_OK) == 0)
		check(path, acknowledged);
	store_dir_remove(path);
	return needed;
}

static void what_was_acknowledged_survives_any_refused_allocation(void **state)
{
	uint64_t needed = live_and_check(UINT64_MAX);
	uint64_t stride = needed / FORKS + 1;

	(void)state;
	assert_true(needed > FORKS);
	for (uint64_t k = 1; k < needed; k += stride) {
		print_message("# allocation %llu of %llu\n", (unsigned long long)k,
			      (unsigned long long)needed);
		live_and_check(k);
	}
}
#else
static void what_was_acknowledged_survives_any_refused_allocation(void **state)
{
	(void)state;
	print_message("# skip: the sanitizer has its own allocator\n");
	skip();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_acknowledged_survives_any_refused_allocation),
	};

	log_set(LOG_LEVELS, LOG_LOGFMT); /* failures are the subject here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
