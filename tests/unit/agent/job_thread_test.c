/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs are done in order on another thread; one that never ends costs its thread, not the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "agent/files/job_thread.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"

#define LONG_NS (60 * CLOCK_NS_PER_S)
#define ROUNDS 3000 /* a multiple of three */
#define TOO_LONG_NS (11 * CLOCK_NS_PER_S)

struct test_job {
	struct job job;
	int number, answer;
	bool hangs, is_urgent;
};

static METRIC_COUNTER(stuck, "test_stuck_total", "", "For this test.");
static atomic_int made, freed, hanging;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held while jobs are to hang */

static void do_job(struct job *job, void *own)
{
	struct test_job *test = (struct test_job *)job;
	int *count = own;

	if (test->hangs) {
		atomic_fetch_add(&hanging, 1);
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
	}
	test->answer = 10 * test->number + (*count)++;
	job->is_urgent = test->is_urgent;
}

static void free_job(struct job *job)
{
	atomic_fetch_add(&freed, 1);
	free(job);
}

static const struct job_thread_work work = {
	.name = "test-jobs",
	.lock_rank = LOCK_AGENT,
	.waiting_max = 8,
	.stuck = &stuck,
	.do_job = do_job,
	.own_bytes = sizeof(int),
	.free_job = free_job,
};

static bool put(struct job_thread *thread, int number, bool hangs, int64_t now_ns)
{
	struct test_job *job = mem_new(struct test_job);

	job->number = number;
	job->hangs = hangs;
	atomic_fetch_add(&made, 1);
	return job_thread_put(thread, &job->job, now_ns);
}

/* Until so many jobs have begun to hang since there were `before`. */
static void wait_for_hanging(int before, int count)
{
	const struct timespec pause = { .tv_nsec = CLOCK_NS_PER_MS };

	while (atomic_load(&hanging) < before + count)
		nanosleep(&pause, NULL);
}

static int take(struct job_thread *thread)
{
	struct test_job *job = (struct test_job *)job_thread_take(thread);
	int answer = job ? job->answer : -1;

	if (job)
		free_job(&job->job);
	return answer;
}

static void jobs_come_back_in_order(void **state)
{
	struct job_thread *thread = job_thread_new(&work);

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_true(put(thread, i, false, clock_monotonic_ns()));
	assert_true(job_thread_settle(thread, LONG_NS));
	for (int i = 0; i < 5; i++)
		assert_int_equal(take(thread), 11 * i); /* the thread's own count goes on */
	assert_int_equal(take(thread), -1);
	job_thread_free(thread);
	assert_int_equal(made, freed);
}

static bool is_told(const struct job_thread *thread)
{
	struct pollfd wanted = { .fd = job_thread_fd(thread), .events = POLLIN };

	return poll(&wanted, 1, 0) == 1;
}

static void an_urgent_job_is_told_until_all_are_taken(void **state)
{
	struct job_thread *thread = job_thread_new(&work);

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct test_job *job = mem_new(struct test_job);

		job->is_urgent = i == 3 || i == 4;
		assert_true(job_thread_put(thread, &job->job, clock_monotonic_ns()));
		assert_true(job_thread_settle(thread, LONG_NS));
		assert_int_equal(is_told(thread), i >= 3);
	}
	for (int i = 0; i < 6; i++) {
		assert_true(is_told(thread));
		assert_int_equal(take(thread), i);
	}
	assert_false(is_told(thread));
	assert_int_equal(take(thread), -1);
	assert_false(is_told(thread));
	job_thread_free(thread);
}

static int take_all(struct job_thread *thread)
{
	struct job *job;
	int taken = 0;

	for (; (job = job_thread_take(thread)); taken++)
		free_job(job);
	return taken;
}

/* Whatever the thread is at when a job comes: asleep, about to be, at another job, or woken. */
static void each_job_is_begun(void **state)
{
	struct job_thread *thread = job_thread_new(&work);
	int taken = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		int before = taken;

		for (int more = i % 3; more >= 0; more--)
			assert_true(put(thread, i, false, 0));
		if (i % 5)
			assert_true(job_thread_settle(thread, LONG_NS));
		/* Or the next ones come while it is on its way to sleep. */
		while (taken == before) {
			taken += take_all(thread);
			sched_yield();
		}
	}
	assert_true(job_thread_settle(thread, LONG_NS));
	taken += take_all(thread);
	assert_int_equal(taken, ROUNDS * 2);
	job_thread_free(thread);
}

static void a_job_that_hangs_is_given_up(void **state)
{
	struct job_thread *thread = job_thread_new(&work);
	int64_t now_ns = clock_monotonic_ns(), stuck_before = metric_get(&stuck);
	int before = atomic_load(&hanging);

	(void)state;
	pthread_mutex_lock(&gate);
	assert_true(put(thread, 1, true, now_ns));
	assert_true(put(thread, 2, false, now_ns));
	wait_for_hanging(before, 1);
	assert_false(job_thread_settle(thread, 20 * CLOCK_NS_PER_MS));
	job_thread_look_after(thread, clock_monotonic_ns() + TOO_LONG_NS);
	assert_true(job_thread_settle(thread, LONG_NS));
	assert_int_equal(take(thread), 20); /* by a new thread */
	assert_int_equal(metric_get(&stuck), stuck_before + 1);
	pthread_mutex_unlock(&gate);
	job_thread_free(thread);
}

static void threads_are_replaced_only_so_often(void **state)
{
	struct job_thread *thread = job_thread_new(&work);
	int before = atomic_load(&hanging);

	(void)state;
	pthread_mutex_lock(&gate);
	for (int i = 0; i < JOB_THREAD_STUCK_MAX + 2; i++) {
		put(thread, i, true, clock_monotonic_ns());
		wait_for_hanging(before, i < JOB_THREAD_STUCK_MAX ? i + 1 : JOB_THREAD_STUCK_MAX);
		job_thread_look_after(thread, clock_monotonic_ns() + TOO_LONG_NS);
	}
	put(thread, 9, false, clock_monotonic_ns());
	assert_true(job_thread_settle(thread,
				      20 * CLOCK_NS_PER_MS)); /* there is no thread to wait for */
	assert_int_equal(take(thread), -1);
	job_thread_free(thread); /* without waiting for those that hang */
	pthread_mutex_unlock(&gate);
}

static void jobs_over_the_limit_are_refused(void **state)
{
	struct job_thread *thread = job_thread_new(&work);
	int64_t now_ns = clock_monotonic_ns();
	int before = atomic_load(&hanging);
	size_t taken = 0;

	(void)state;
	pthread_mutex_lock(&gate);
	put(thread, 0, true, now_ns);
	wait_for_hanging(before, 1);
	for (int i = 0; i < 20; i++)
		taken += put(thread, i, false, now_ns);
	assert_int_equal(taken, work.waiting_max);
	assert_true(job_thread_is_full(thread));
	pthread_mutex_unlock(&gate);
	assert_true(job_thread_settle(thread, LONG_NS));
	job_thread_free(thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_come_back_in_order),
		cmocka_unit_test(an_urgent_job_is_told_until_all_are_taken),
		cmocka_unit_test(each_job_is_begun),
		cmocka_unit_test(a_job_that_hangs_is_given_up),
		cmocka_unit_test(threads_are_replaced_only_so_often),
		cmocka_unit_test(jobs_over_the_limit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
