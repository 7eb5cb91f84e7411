/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals - handlers that burn CPU on the interrupted stack (SIGPROF) and on a stack of their own
 * (SIGVTALRM); what they interrupt is a recursion, at any of its instructions.
 */
#include <signal.h>
#include <sys/time.h>

#include "work.h"

static char handler_stack[1 << 16];

KEEP static uint64_t descend(uint64_t n)
{
	uint64_t local[3] = { n, n + 1, n + 2 };

	__asm__ volatile("" ::"r"(local) : "memory");
	return n < 2 ? local[n] : descend(n - 1) + descend(n - 2) + local[n % 3];
}

KEEP static void same_stack_work(void)
{
	work_rounds(2000000);
	NO_TAIL_CALL;
}

KEEP static void on_same_stack(int number)
{
	same_stack_work();
	work_sink += (uint64_t)number;
}

KEEP static void own_stack_work(void)
{
	work_rounds(2000000);
	NO_TAIL_CALL;
}

KEEP static void on_own_stack(int number, siginfo_t *info, void *context)
{
	own_stack_work();
	work_sink += (uint64_t)number + (uint64_t)(uintptr_t)info + (uint64_t)(uintptr_t)context;
}

int main(int argc, char **argv)
{
	stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };
	struct sigaction same = { .sa_handler = on_same_stack };
	struct sigaction own = { .sa_sigaction = on_own_stack,
				 .sa_flags = SA_ONSTACK | SA_SIGINFO };
	struct itimerval often = { { 0, 7000 }, { 0, 7000 } };

	work_begin(argc, argv);
	sigaltstack(&stack, NULL);
	sigaction(SIGPROF, &same, NULL);
	sigaction(SIGVTALRM, &own, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	setitimer(ITIMER_VIRTUAL, &often, NULL);
	while (!over())
		work_sink += descend(22);
	return 0;
}
