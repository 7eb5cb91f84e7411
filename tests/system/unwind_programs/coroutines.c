/* SPDX-License-Identifier: Apache-2.0 */
/* coroutines - two contexts made by makecontext on stacks of their own: they begin at
 * __start_context. */
#include <ucontext.h>

#include "work.h"

static ucontext_t scheduler, contexts[2];
static char stacks[2][1 << 16];

KEEP static void yield(int number)
{
	swapcontext(&contexts[number], &scheduler);
	NO_TAIL_CALL;
}

KEEP static void step(int number)
{
	if (number)
		spin();
	else
		work_rounds(1000);
	yield(number);
	NO_TAIL_CALL;
}

KEEP static void first_routine(void)
{
	for (;;)
		step(0);
}

/* Its arguments lie on the stack, above the return address into __start_context. */
KEEP static void second_routine(int a, int b, int c, int d, int e, int f, int g, int h)
{
	for (;;) {
		step(1);
		work_sink += (uint64_t)(a + b + c + d + e + f + g + h);
	}
}

int main(int argc, char **argv)
{
	work_begin(argc, argv);
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
		contexts[i].uc_link = i ? &scheduler : NULL;
	}
	makecontext(&contexts[0], first_routine, 0);
	makecontext(&contexts[1], (void (*)(void))second_routine, 8, 1, 2, 3, 4, 5, 6, 7, 8);
	while (!over()) {
		for (int i = 0; i < 100; i++)
			swapcontext(&scheduler, &contexts[0]);
		swapcontext(&scheduler, &contexts[1]);
	}
	return 0;
}
