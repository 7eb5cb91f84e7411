/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work - what the programs of this folder share: CPU time in a leaf that is known by its name, and
 * a budget of CPU time. Each program calls spin() or a named leaf of its own below a chain of
 * functions that ../whole_stack_test knows. It ends when it has used argv[1] milliseconds of CPU,
 * or, given xN, at the Nth call of over().
 */
#ifndef UNWIND_PROGRAMS_WORK_H
#define UNWIND_PROGRAMS_WORK_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* A function that is called, never inlined, cloned or looked into. */
#ifdef __clang__
#define KEEP __attribute__((noinline, used))
#else
#define KEEP __attribute__((noipa, used))
#endif
/* After a call: it is no tail call, whatever comes next. */
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

static volatile uint64_t work_sink;
static uint64_t work_budget_ns, work_calls;

static inline __attribute__((always_inline)) void work_rounds(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		work_sink = work_sink * 6364136223846793005ull + 1442695040888963407ull;
}

/* About a millisecond. */
KEEP static void spin(void)
{
	work_rounds(300000);
}

static inline void work_begin(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] == 'x')
		work_calls = strtoull(argv[1] + 1, NULL, 10);
	work_budget_ns = (argc > 1 ? strtoull(argv[1], NULL, 10) : 2000) * 1000000;
}

/* Whether the budget of all threads together is used. */
KEEP static int over(void)
{
	struct timespec now;

	if (work_calls)
		return !--work_calls;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec >= work_budget_ns;
}

#endif
