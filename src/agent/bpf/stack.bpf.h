/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack - copies the memory of a stack that the agent is to walk once more (struct stack_record),
 * and what that walk reads outside of it. Part of sample.bpf.c.
 */
#ifndef FIRN_AGENT_BPF_STACK_BPF_H
#define FIRN_AGENT_BPF_STACK_BPF_H

#include "agent/bpf/walk.h"

/*
 * Appends memory to the stack, up to the end of a page, since what is above the stack is not there.
 * Returns how much.
 */
static __always_inline __u64 append_page(struct stack_record *record, __u64 at, __u64 address)
{
	__u64 bytes = WALK_PAGE_BYTES - (address & (WALK_PAGE_BYTES - 1));

	barrier_var(bytes); /* clang knows the bounds, the verifier does not */
	barrier_var(at);
	if (at > STACK_RECORD_BYTES - WALK_PAGE_BYTES || bytes > WALK_PAGE_BYTES ||
	    walk_read((char *)record->words + at, bytes, address))
		return 0;
	return bytes;
}

/* bpf_loop callback. */
static long keep_page(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 bytes = append_page(record, record->bytes, record->start + record->bytes);

	(void)index;
	record->bytes += bytes;
	return !bytes;
}

/* bpf_loop callback. */
static long keep_far_page(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 bytes = append_page(record, record->bytes + record->far_bytes,
				  record->far_start + record->far_bytes);

	(void)index;
	record->far_bytes += bytes;
	return !bytes;
}

/* bpf_loop callback: from one frame pointer, in far_start, to the next. */
static long follow_pointer(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 pointer = record->far_start, at = pointer - record->start;

	(void)index;
	if (at >= record->bytes)
		return 1; /* it leads out */
	record->far_start = record->words[row_masked(at / 8, STACK_RECORD_BYTES / 8 - 1)];
	if (record->far_start - record->start > at)
		return 0;
	record->far_start = 0; /* callers are above */
	return 1;
}

#define STACK_POINTERS_MAX 64
#define STACK_FAR_BELOW 1024 /* a frame pointer is above what its frame has on the stack */

/* Keeps what the chain of frame pointers leads to outside of what is kept. */
static __always_inline void keep_far(struct stack_record *record)
{
	__u64 pointer;

	record->far_start = record->fp;
	bpf_loop(STACK_POINTERS_MAX, follow_pointer, &record, 0);
	pointer = record->far_start & ~7ull;
	if (pointer - record->start < record->bytes || pointer < 2 * WALK_PAGE_BYTES)
		return;
	if (record->bytes > STACK_RECORD_BYTES - STACK_FAR_BYTES)
		record->bytes = STACK_RECORD_BYTES - STACK_FAR_BYTES;
	record->far_start = pointer - STACK_FAR_BELOW;
	bpf_loop(STACK_RECORD_BYTES / WALK_PAGE_BYTES, keep_far_page, &record, 0);
	if (record->far_bytes)
		return;
	record->far_start = pointer; /* what is below is not there */
	bpf_loop(STACK_RECORD_BYTES / WALK_PAGE_BYTES, keep_far_page, &record, 0);
}

/* Keeps a word that is no stack. Returns it, or 0. */
static __always_inline __u64 keep_apart(struct stack_record *record, __u64 address)
{
	__u64 at = (record->bytes + record->far_bytes) / 8 + 2 * record->apart_count;
	struct stack_apart apart = { .address = address };

	if (record->apart_count >= STACK_APART_MAX ||
	    walk_read(&apart.word, sizeof(apart.word), address))
		return 0;
	barrier_var(at); /* clang knows the bound, the verifier does not */
	if (at > STACK_RECORD_WORDS_MAX - 2)
		return 0;
	__builtin_memcpy(&record->words[at], &apart, sizeof(apart));
	record->apart_count++;
	return apart.word;
}

/* Keeps the code at an address if it says how a frame of generated code is left. */
static __always_inline void keep_code(struct stack_record *record, __u64 address)
{
	__u64 code;

	if (address < USER_ADDRESS_MIN || address >= USER_ADDRESS_END ||
	    address - record->start < record->bytes || walk_read(&code, sizeof(code), address) ||
	    walk_row_of_end(code) == TABLE_ROW_UNUSED)
		return;
	keep_apart(record, address);
}

/* bpf_loop callback: of each word that is an address. */
static long keep_code_of_word(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;

	keep_code(record, record->words[row_masked(index, STACK_RECORD_BYTES / 8 - 1)]);
	return record->apart_count >= STACK_APART_MAX;
}

/* What leads from the runtime's stack to the goroutine's, if it is Go: see walk_to_goroutine. */
static __always_inline void keep_goroutine(struct stack_record *record)
{
	__u64 g = record->registers[WALK_REGISTER_AT >> 4 * GO_REGISTER_G & 15];
	__u64 m, g0, current;

	record->apart_count = 0;
	if (!g || !(m = keep_apart(record, g + GO_G_M)) ||
	    !(g0 = keep_apart(record, m + GO_M_G0)) || keep_apart(record, g0 + GO_G_M) != m) {
		record->apart_count = 0;
		return;
	}
	WALK_UNROLL
	for (int i = 0; i < 2; i++) {
		current = keep_apart(record, m + (i ? GO_M_CURG : GO_M_CURG_1_25));
		if (!current || keep_apart(record, current + GO_G_M) != m)
			continue;
		keep_apart(record, current + GO_G_SCHED_SP);
		keep_apart(record, current + GO_G_SCHED_PC);
	}
}

#endif
