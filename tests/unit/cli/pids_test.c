/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of process ids, of this process and a thread of it. */
#include "cli/pids.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct other_thread {
	pthread_barrier_t is_there, is_over;
	pid_t id;
};

static void *run(void *data)
{
	struct other_thread *other = data;

	other->id = gettid();
	pthread_barrier_wait(&other->is_there);
	pthread_barrier_wait(&other->is_over);
	return NULL;
}

static void the_id_of_a_thread_is_that_of_its_process(void **state)
{
	struct other_thread other;
	pthread_t thread;
	pid_t pids[PIDS_MAX];
	char text[64];
	struct err err;
	size_t count;

	(void)state;
	pthread_barrier_init(&other.is_there, NULL, 2);
	pthread_barrier_init(&other.is_over, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, run, &other), 0);
	pthread_barrier_wait(&other.is_there);
	assert_int_not_equal(other.id, getpid());
	snprintf(text, sizeof(text), "%d,%d,1", (int)other.id, (int)getpid());
	assert_int_equal(pids_parse(text, pids, &count, &err), 0);
	pthread_barrier_wait(&other.is_over);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&other.is_there);
	pthread_barrier_destroy(&other.is_over);
	assert_int_equal(count, 3);
	assert_int_equal(pids[0], getpid());
	assert_int_equal(pids[1], getpid());
	assert_int_equal(pids[2], 1);
}

static void what_is_no_process_is_said(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "no process id given" },
		{ "1,", NULL },
		{ "0", "\"0\" is not a process id" },
		{ "one", "\"one\" is not a process id" },
		{ "1,2147483648", "\"2147483648\" is not a process id" },
		{ "2147483647", "no process 2147483647" },
	};
	pid_t pids[PIDS_MAX];
	struct err err;
	size_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int code = pids_parse(cases[i].text, pids, &count, &err);

		assert_int_equal(code != 0, cases[i].says != NULL);
		if (cases[i].says)
			assert_non_null(strstr(err.message, cases[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_id_of_a_thread_is_that_of_its_process),
		cmocka_unit_test(what_is_no_process_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
