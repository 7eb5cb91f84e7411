/* SPDX-License-Identifier: Apache-2.0 */
/* threads - four named threads, each with a chain of its own from its start routine. */
#include <pthread.h>
#include <stdio.h>

#include "work.h"

#define WORKER(n)                                                                                  \
	KEEP static void inner_##n(void)                                                           \
	{                                                                                          \
		char local[64 + 100 * n];                                                          \
                                                                                                   \
		__asm__ volatile("" ::"r"(local) : "memory");                                      \
		spin();                                                                            \
		NO_TAIL_CALL;                                                                      \
	}                                                                                          \
	KEEP static void outer_##n(void)                                                           \
	{                                                                                          \
		inner_##n();                                                                       \
		NO_TAIL_CALL;                                                                      \
	}                                                                                          \
	KEEP static void *routine_##n(void *unused)                                                \
	{                                                                                          \
		char name[16];                                                                     \
                                                                                                   \
		snprintf(name, sizeof(name), "worker %d", n);                                      \
		pthread_setname_np(pthread_self(), name);                                          \
		while (!over())                                                                    \
			outer_##n();                                                               \
		return unused;                                                                     \
	}

WORKER(0)
WORKER(1)
WORKER(2)
WORKER(3)

int main(int argc, char **argv)
{
	static void *(*const routines[])(void *) = { routine_0, routine_1, routine_2, routine_3 };
	pthread_t threads[4];

	work_begin(argc, argv);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, routines[i], NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
