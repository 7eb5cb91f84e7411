/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: each misuse ends the process with the names of the locks; right use does not. */
#include "base/lock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static struct lock outer = LOCK_INITIALIZER("test.outer", LOCK_CLI);
static struct lock inner = LOCK_INITIALIZER("test.inner", LOCK_CLI + 1);

/* What the child says before it aborts. */
static void assert_aborts(void (*misuse)(void), const char *first, const char *second)
{
	char said[512] = "";
	size_t len = 0;
	ssize_t got;
	int ends[2], status;
	pid_t pid;

	assert_return_code(pipe(ends), 0);
	pid = fork();
	assert_return_code(pid, 0);
	if (!pid) {
		const struct rlimit no_core = { 0, 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		misuse();
		_exit(0);
	}
	close(ends[1]);
	while (len < sizeof(said) - 1 &&
	       (got = read(ends[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)got;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(said, first));
	assert_non_null(strstr(said, second));
}

static void take_in_wrong_order(void)
{
	lock_take(&inner);
	lock_take(&outer);
}

static void take_two_of_one_rank(void)
{
	struct lock twin;

	lock_init(&twin, "test.twin", LOCK_CLI);
	lock_take(&outer);
	lock_take(&twin);
}

static void take_twice(void)
{
	lock_take(&outer);
	lock_take(&outer);
}

static void give_without_taking(void)
{
	lock_give(&outer);
}

static void need_what_is_not_held(void)
{
	lock_assert_held(&inner);
}

static void wait_with_a_later_lock(void)
{
	struct lock_condition condition;

	lock_condition_init(&condition);
	lock_take(&outer);
	lock_take(&inner);
	lock_wait_until(&condition, &outer, 0);
}

static void misuse_aborts_with_the_names(void **state)
{
	(void)state;
	assert_aborts(take_in_wrong_order, "test.outer", "test.inner");
	assert_aborts(take_two_of_one_rank, "test.twin", "test.outer");
	assert_aborts(take_twice, "test.outer", "twice");
	assert_aborts(give_without_taking, "test.outer", "not held");
	assert_aborts(need_what_is_not_held, "test.inner", "not held");
	assert_aborts(wait_with_a_later_lock, "test.outer", "test.inner");
}

static void locks_are_given_in_any_order(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * LOCK_HELD_MAX; i++) {
		lock_take(&outer);
		lock_take(&inner);
		lock_assert_held(&outer);
		lock_give(&outer);
		assert_false(lock_is_held(&outer));
		lock_assert_held(&inner);
		lock_give(&inner);
	}
}

static void *try_inner(void *context)
{
	bool *taken = context;

	*taken = lock_try(&inner);
	if (*taken)
		lock_give(&inner);
	return NULL;
}

static bool another_thread_can_take_inner(void)
{
	pthread_t thread;
	bool taken = false;

	assert_int_equal(pthread_create(&thread, NULL, try_inner, &taken), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return taken;
}

static void try_waits_for_nobody_and_knows_no_order(void **state)
{
	(void)state;
	lock_take(&inner);
	assert_false(another_thread_can_take_inner());
	assert_true(lock_try(&outer)); /* of a lower rank: nobody can be kept waiting by it */
	lock_give(&outer);
	lock_give(&inner);
	assert_true(another_thread_can_take_inner());
}

struct ball {
	struct lock lock;
	struct lock_condition changed;
	int touches;
	bool is_held_by_other;
};

static void *play(void *context)
{
	struct ball *ball = context;

	lock_take(&ball->lock);
	while (ball->touches < 100) {
		if (ball->touches % 2) {
			ball->touches++;
			lock_broadcast(&ball->changed);
		} else {
			lock_wait(&ball->changed, &ball->lock);
		}
		ball->is_held_by_other |= !lock_is_held(&ball->lock);
	}
	lock_give(&ball->lock);
	return NULL;
}

static void a_wait_gives_the_lock_and_takes_it_back(void **state)
{
	struct ball ball = { .touches = 0 };
	pthread_t thread;

	(void)state;
	lock_init(&ball.lock, "test.ball", LOCK_CLI);
	lock_condition_init(&ball.changed);
	lock_take(&ball.lock);
	assert_int_equal(pthread_create(&thread, NULL, play, &ball), 0);
	while (ball.touches < 100) {
		if (ball.touches % 2) {
			lock_wait(&ball.changed, &ball.lock);
			lock_assert_held(&ball.lock);
		} else {
			ball.touches++;
			lock_signal(&ball.changed);
		}
	}
	lock_give(&ball.lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(ball.is_held_by_other);
	lock_condition_free(&ball.changed);
	lock_free(&ball.lock);
}

static void a_wait_ends_at_its_time(void **state)
{
	struct lock_condition never;
	int64_t at_ns = clock_monotonic_ns() + 10 * CLOCK_NS_PER_MS;

	(void)state;
	lock_condition_init(&never);
	lock_take(&outer);
	while (lock_wait_until(&never, &outer, at_ns))
		;
	assert_true(clock_monotonic_ns() >= at_ns);
	lock_assert_held(&outer);
	lock_give(&outer);
	lock_condition_free(&never);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misuse_aborts_with_the_names),
		cmocka_unit_test(locks_are_given_in_any_order),
		cmocka_unit_test(try_waits_for_nobody_and_knows_no_order),
		cmocka_unit_test(a_wait_gives_the_lock_and_takes_it_back),
		cmocka_unit_test(a_wait_ends_at_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
