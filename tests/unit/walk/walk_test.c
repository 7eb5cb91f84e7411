/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder at every instruction of a program, from the dynamic linker's first to the last.
 *
 * What is right is known without any unwind information: calls and returns are watched, and give
 * the list of return addresses that the walk has to find.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "unit/walk/replay.h"

#define CALLS_MAX 4096
#define STEPS_MAX 400000

struct call {
	uint64_t at; /* where the return address lies */
	uint64_t return_address;
};

struct stepper {
	pid_t pid;
	struct replay *replay;
	struct recording before, after;
	struct call calls[CALLS_MAX];
	size_t calls_count;
	long steps, wrong, unknown;
};

static const char *program;

static pid_t start_program(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(program, program, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static uint64_t stack_word(const struct recording *recording, uint64_t address)
{
	uint64_t word = 0, at = address - recording->stack_start;

	if (address >= recording->stack_start && at + 8 <= recording->stack_bytes)
		memcpy(&word, recording->stack + at, 8);
	return word;
}

/* A call leaves the address behind itself on the stack, and goes elsewhere. */
static bool was_call(const struct recording *before, const struct recording *after)
{
	uint64_t pushed = stack_word(after, after->registers.rsp);
	uint64_t len = pushed - before->registers.rip;

	return after->registers.rsp == before->registers.rsp - 8 && len >= 2 && len <= 9 &&
	       after->registers.rip != pushed;
}

/* Pushes look like calls only when they push the address of the next instruction. */
static void follow(struct stepper *stepper)
{
	uint64_t sp = stepper->after.registers.rsp;

	while (stepper->calls_count && stepper->calls[stepper->calls_count - 1].at < sp)
		stepper->calls_count--;
	if (was_call(&stepper->before, &stepper->after)) {
		assert_true(stepper->calls_count < CALLS_MAX);
		stepper->calls[stepper->calls_count++] =
			(struct call){ sp, stack_word(&stepper->after, sp) };
	}
}

static bool is_right(const struct stepper *stepper, enum stack_end end, const struct sample *sample)
{
	size_t count = stepper->calls_count;

	if (end != STACK_COMPLETE || sample->user_count != count + 1)
		return false;
	for (size_t i = 0; i < count; i++)
		if (sample->frames[i + 1] + 1 != stepper->calls[count - 1 - i].return_address)
			return false;
	return true;
}

static void tell(const struct stepper *stepper, enum stack_end end, const struct sample *sample)
{
	printf("# step %ld: end %d, %u frames, %zu calls\n", stepper->steps, (int)end,
	       sample->user_count, stepper->calls_count);
	for (size_t i = 0; i < sample->user_count && i < 6; i++)
		printf("#   frame %zu: %s\n", i, replay_name(stepper->replay, sample->frames[i]));
	for (size_t i = 0; i < stepper->calls_count && i < 6; i++)
		printf("#   call  %zu: %s\n", i + 1,
		       replay_name(stepper->replay,
				   stepper->calls[stepper->calls_count - 1 - i].return_address -
					   1));
}

static void check_walk(struct stepper *stepper, unsigned walker)
{
	static struct sample sample;
	enum stack_end end = replay_walk(stepper->replay, walker, &stepper->after, &sample);

	if (is_right(stepper, end, &sample))
		return;
	stepper->wrong++;
	if (stepper->wrong <= 20)
		tell(stepper, end, &sample);
}

/* With gaps, what was kept of the last walk is partly right, as between samples. */
static void check(struct stepper *stepper)
{
	static const long every[REPLAY_WALKERS] = { 1, 5, 23, 61, 307, 1009 };

	if (!replay_knows(stepper->replay, stepper->after.registers.rip))
		replay_read_mappings(stepper->replay); /* a library has come */
	for (unsigned i = 0; i < REPLAY_WALKERS; i++)
		if (stepper->steps % every[i] == 0)
			check_walk(stepper, i);
}

static void step_through(struct stepper *stepper)
{
	int status;

	assert_true(replay_record(stepper->replay, stepper->pid, &stepper->after));
	while (stepper->steps < STEPS_MAX) {
		check(stepper);
		stepper->before = stepper->after;
		stepper->steps++;
		if (ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, NULL) ||
		    waitpid(stepper->pid, &status, 0) != stepper->pid || !WIFSTOPPED(status))
			return;
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
		if (!replay_record(stepper->replay, stepper->pid, &stepper->after))
			return;
		follow(stepper);
	}
}

static void every_instruction_has_its_callers(void **state)
{
	struct stepper *stepper = mem_new(struct stepper);

	(void)state;
	stepper->pid = start_program();
	stepper->replay = replay_new(stepper->pid);
	step_through(stepper);
	kill(stepper->pid, SIGKILL);
	waitpid(stepper->pid, NULL, 0);
	printf("# %ld instructions, %ld of them with a wrong stack\n", stepper->steps,
	       stepper->wrong);
	assert_true(stepper->steps > 50000);
	assert_int_equal(stepper->wrong, 0);
	replay_free(stepper->replay);
	free(stepper);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_has_its_callers),
	};

	if (argc < 2)
		return 2;
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
