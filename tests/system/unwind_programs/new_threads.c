/* SPDX-License-Identifier: Apache-2.0 */
/*
 * new_threads - threads that begin one after the other, each on a stack full of words that look
 * like return addresses into over(), and are none. For ../first_samples_test.
 */
#include <pthread.h>
#include <stdint.h>

#include "work.h"

#define STACK_WORDS 8192u
#define FULL_WORDS 2048u /* at the upper end, where a thread begins */

static uintptr_t stack[STACK_WORDS] __attribute__((aligned(4096)));

KEEP static void *begins(void *unused)
{
	work_rounds(3000);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t thread;

	work_begin(argc, argv);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, sizeof(stack));
	while (!over()) {
		for (unsigned i = STACK_WORDS - FULL_WORDS; i < STACK_WORDS; i++)
			stack[i] = (uintptr_t)over + 16;
		if (pthread_create(&thread, &attributes, begins, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	return 0;
}
