/* SPDX-License-Identifier: Apache-2.0 */
#include "base/confine/filter_program.h"

#include <assert.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the architecture of system calls is not known"
#endif

#define X32_NUMBERS 0x40000000u /* from here on: the same calls by other numbers */

static void add(struct filter_program *program, uint16_t code, uint32_t operand, uint8_t if_true,
		uint8_t if_false)
{
	assert(program->len < FILTER_PROGRAM_MAX);
	program->code[program->len++] = (struct sock_filter){ code, if_true, if_false, operand };
}

static void load(struct filter_program *program, size_t offset)
{
	add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void load_number(struct filter_program *program)
{
	load(program, offsetof(struct seccomp_data, nr));
}

/* The low half: all architectures here are little-endian. */
static void load_argument(struct filter_program *program, unsigned argument)
{
	load(program, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * argument);
}

static void answer(struct filter_program *program, uint32_t verdict)
{
	add(program, BPF_RET | BPF_K, verdict, 0, 0);
}

void filter_program_begin(struct filter_program *program)
{
	program->len = 0;
	load(program, offsetof(struct seccomp_data, arch));
	add(program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	answer(program, SECCOMP_RET_KILL_PROCESS);
	load_number(program);
	add(program, BPF_JMP | BPF_JGE | BPF_K, X32_NUMBERS, 0, 1);
	answer(program, SECCOMP_RET_KILL_PROCESS);
}

void filter_program_call(struct filter_program *program, int number, uint32_t verdict)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
	answer(program, verdict);
}

void filter_program_bits(struct filter_program *program, int number, unsigned argument,
			 uint32_t bits, bool none, uint32_t verdict)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
	load_argument(program, argument);
	add(program, BPF_JMP | BPF_JSET | BPF_K, bits, none, !none);
	answer(program, verdict);
	load_number(program);
}

void filter_program_value(struct filter_program *program, int number, unsigned argument,
			  uint32_t value, uint32_t verdict)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
	load_argument(program, argument);
	add(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	answer(program, verdict);
	load_number(program);
}

void filter_program_end(struct filter_program *program, uint32_t verdict)
{
	answer(program, verdict);
}

int filter_program_set(struct filter_program *program, bool logged)
{
	struct sock_fprog filter = { .len = program->len, .filter = program->code };

	if (logged &&
	    !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, &filter))
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
