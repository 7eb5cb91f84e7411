/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms - one line of /proc/kallsyms:
 *
 *     ffffffffc0401000 t ext4_readdir	[ext4]
 *
 * Address, type letter as nm(1) prints it, name, and the module in brackets after a tab. Addresses
 * are all 0 when the kernel hides them (kernel.kptr_restrict). Slices point into the line.
 */
#ifndef FIRN_CODEC_PROCESS_KALLSYMS_H
#define FIRN_CODEC_PROCESS_KALLSYMS_H

#include "base/err.h"
#include "base/slice.h"

struct kallsyms_line {
	uint64_t address;
	char type;	     /* 't', 'T', 'w', 'W': code */
	struct slice name;   /* not empty */
	struct slice module; /* without brackets; empty = the kernel itself */
};

/* `line` comes without its newline. */
int kallsyms_parse_line(struct slice line, struct kallsyms_line *ret, struct err *err);

static inline bool kallsyms_is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

#endif
