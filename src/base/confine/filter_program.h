/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_program - writes the program that the kernel asks about each system call of a process
 * (seccomp(2), classic BPF). The first rule that matches decides, so the most frequent calls come
 * first. Callers end it with a verdict for all other calls, and install it.
 *
 * Verdicts are SECCOMP_RET_*. Rules see the low 32 bits of an argument, which suffice for flags,
 * descriptors and process ids. One thread at a time; more than FILTER_PROGRAM_MAX instructions
 * abort, since lists of calls are our own.
 */
#ifndef FIRN_BASE_CONFINE_FILTER_PROGRAM_H
#define FIRN_BASE_CONFINE_FILTER_PROGRAM_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define FILTER_PROGRAM_MAX 1024

struct filter_program {
	struct sock_filter code[FILTER_PROGRAM_MAX];
	unsigned short len;
};

/* A process that calls by the numbers of another architecture, or of x32, is killed. */
void filter_program_begin(struct filter_program *program);

void filter_program_call(struct filter_program *program, int number, uint32_t verdict);

/* The verdict is for calls whose argument has one of the bits, or (`none`) has none of them. */
void filter_program_bits(struct filter_program *program, int number, unsigned argument,
			 uint32_t bits, bool none, uint32_t verdict);

/* The verdict is for calls whose argument is `value`. */
void filter_program_value(struct filter_program *program, int number, unsigned argument,
			  uint32_t value, uint32_t verdict);

void filter_program_end(struct filter_program *program, uint32_t verdict);

/*
 * Installs the filter for this thread and those that it starts. With `logged` the kernel logs
 * refused calls (4.14 and later). 0, or -1 with errno.
 */
MUST_USE int filter_program_set(struct filter_program *program, bool logged);

#endif
