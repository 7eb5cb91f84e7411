/* SPDX-License-Identifier: Apache-2.0 */
/* A prompt thread has short slices, and the priority that it had before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/files/prompt.h"

#define NICE 3

/* The kernel's struct sched_attr, whose header and the C library's exclude each other. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

struct seen {
	struct attributes before, after, of_child;
};

static struct attributes of_this_thread(void)
{
	struct attributes attr = { 0 };

	assert_int_equal(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
	return attr;
}

static void *note_child(void *data)
{
	struct seen *seen = data;

	seen->of_child = of_this_thread();
	return NULL;
}

static void *become_prompt(void *data)
{
	struct seen *seen = data;
	pthread_t child;

	setpriority(PRIO_PROCESS, 0, NICE);
	seen->before = of_this_thread();
	prompt_begin();
	seen->after = of_this_thread();
	assert_int_equal(pthread_create(&child, NULL, note_child, seen), 0);
	pthread_join(child, NULL);
	return NULL;
}

static void a_prompt_thread_has_short_slices(void **state)
{
	struct seen seen = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, become_prompt, &seen), 0);
	pthread_join(thread, NULL);
	assert_int_equal(seen.after.policy, SCHED_OTHER);
	assert_int_equal(seen.after.nice, NICE);
	if (!seen.before.runtime) {
		printf("# skip: this kernel has no slices of a thread's own (6.12)\n");
		skip();
	}
	assert_true(seen.after.runtime < seen.before.runtime);
	assert_int_equal(seen.of_child.runtime, seen.after.runtime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_thread_has_short_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
