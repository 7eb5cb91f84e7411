/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind_sink - where decoders of unwind information put what they find.
 *
 * A decoder first lists functions, in any order, with a cookie that finds each again; for a cookie
 * it then gives that function's rows in order of address. So table_build can sort functions and
 * stream rows, without memory for all rows at once. Addresses are the ELF file's virtual addresses.
 * A callback that returns other than 0 ends the walk with that value.
 */
#ifndef FIRN_CODEC_ELF_UNWIND_SINK_H
#define FIRN_CODEC_ELF_UNWIND_SINK_H

#include <stdint.h>

#include "codec/elf/unwind_rule.h"

struct unwind_function_sink {
	/* Addresses from `start` up to but not with `end`. */
	int (*function)(void *context, uint64_t start, uint64_t end, uint64_t cookie);
	void *context;
};

struct unwind_row_sink {
	/* The rule holds from `address` to the next row, or to the end of the function. */
	int (*row)(void *context, uint64_t address, const struct unwind_rule *rule);
	void *context;
};

#endif
