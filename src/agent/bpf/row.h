/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * row - finds the row of an unwind table (table.h) that holds for an address. Part of the walk
 * (walk.h), and like it plain C. A table that is not sound gives a wrong row, and nothing worse:
 * reads stay in the chunk.
 */
#ifndef FIRN_AGENT_BPF_ROW_H
#define FIRN_AGENT_BPF_ROW_H

#include "agent/bpf/table.h"

/* Loops are unrolled for old verifiers; elsewhere the compiler knows best. */
#ifdef __bpf__
#define WALK_UNROLL _Pragma("unroll")
#else
#define WALK_UNROLL
#endif

/* What few samples need is kept out of the way of what all need: at a tick the caches are cold. */
#define WALK_APART static __attribute__((noinline))

static __always_inline __u32 row_load(const __u8 *chunk, __u32 at)
{
	return *(const __u32 *)(chunk + (at & (TABLE_CHUNK_BYTES - 4)));
}

/*
 * All ones when the row is behind the key, else 0. Arithmetic, because no processor foresees how
 * such branches go.
 */
static __always_inline __u64 row_is_behind(__u32 row, __u64 key)
{
	return (__u64)((__s64)(key - row) >> 63);
}

/* The last of the far rows that is not behind the key, or `before`, which is in the line. */
WALK_APART __u32 row_find_far(const __u8 *chunk, __u32 far_at, __u32 count, __u64 key, __u32 before)
{
	__u32 low = 0, high = count & (TABLE_BLOCK_BYTES - 1);

	/* Of 0 .. high rows: TABLE_BUCKET_SHIFT_MAX + 1 halvings. */
	for (int i = 0; i < TABLE_BUCKET_SHIFT_MAX + 1; i++) {
		__u32 middle = low + (high - low) / 2;
		__u64 is_behind;

		if (low >= high)
			break;
		is_behind = row_is_behind(row_load(chunk, far_at + 4 * middle), key);
		low += (middle - low + 1) & ~is_behind;
		high -= (high - middle) & is_behind;
	}
	return low ? row_load(chunk, far_at + 4 * (low - 1)) : before;
}

/* The row for the place `into` the segment, which lies in it. */
static __always_inline __u32 row_find(const struct table_segment *segment, __u64 into,
				      const __u8 *chunk)
{
	__u32 shift = segment->bucket_shift & 15;
	__u32 lines_at = segment->lines_at & (TABLE_CHUNK_BYTES - TABLE_LINE_BYTES);
	__u64 line_at = (lines_at + (into >> shift) * TABLE_LINE_BYTES) &
			(TABLE_CHUNK_BYTES - TABLE_LINE_BYTES);
	const __u32 *line = (const __u32 *)(chunk + line_at);
	__u64 key = TABLE_ROW_KEY(into & ((1u << shift) - 1));
	__u64 at = 0;
	__u32 row, far;

	/* Of the 15 words behind the first, all that are not behind the key come first. */
	at += 8 & ~row_is_behind(line[8], key);
	at += 4 & ~row_is_behind(line[(at + 4) & 15], key);
	at += 2 & ~row_is_behind(line[(at + 2) & 15], key);
	at += 1 & ~row_is_behind(line[(at + 1) & 15], key);
	row = line[at & 15];
	far = TABLE_ROW_OFFSET(line[0]);
	if (far && at == TABLE_LINE_ROWS_MAX - 1)
		return row_find_far(chunk, lines_at + 4 * TABLE_ROW_RULE(line[TABLE_LINE_ROWS_MAX]),
				    far, key, row);
	return row;
}

/* The rule that a row lists; NULL when the table is not sound. */
static __always_inline const struct unwind_rule *
row_listed_rule(const struct table_segment *segment, const __u8 *chunk, __u32 row)
{
	__u32 at = segment->rules_at + TABLE_RULE_INDEX(row) * sizeof(struct unwind_rule);

	at &= TABLE_CHUNK_BYTES - 4;
	if (at > TABLE_CHUNK_BYTES - sizeof(struct unwind_rule))
		return NULL;
	return (const struct unwind_rule *)(chunk + at);
}

#endif
