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
#define WALK_KEEP_LOOP _Pragma("nounroll") /* known to end soon; small code is worth more */
#else
#define WALK_UNROLL
#define WALK_KEEP_LOOP
#endif

/*
 * Marks code that few samples need: not inlined, so that the code that all samples need is small,
 * because at a tick the CPU's caches are cold.
 */
#define WALK_APART static __attribute__((noinline))

/*
 * Not inlined, and verified once instead of at each call: for functions with a loop and many
 * callers. The verifier assumes that their pointers may be NULL, so each begins with a check.
 */
#ifdef __bpf__
#define WALK_VERIFIED_ONCE __attribute__((noinline))
#else
#define WALK_VERIFIED_ONCE WALK_APART
#endif

/* The compiler may know that an index is in bounds; the verifier has to see the mask. */
static __always_inline __u32 row_masked(__u32 index, __u32 mask)
{
	__asm__ volatile("" : "+r"(index));
	return index & mask;
}

static __always_inline __u32 row_load(const __u8 *chunk, __u32 at)
{
	return *(const __u32 *)(chunk + (at & (TABLE_CHUNK_BYTES - 4)));
}

/*
 * All ones if the row is after the key, else 0. Arithmetic, because such branches are
 * unpredictable.
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

static __always_inline __u32 row_lines_at(const struct table_segment *segment)
{
	return segment->lines_at & (TABLE_CHUNK_BYTES - TABLE_LINE_BYTES);
}

/* The line of the bucket around the place `into` the segment. */
static __always_inline const __u32 *row_line(const struct table_segment *segment, __u64 into,
					     const __u8 *chunk)
{
	__u64 line = into >> (segment->bucket_shift & 15);

	return (const __u32 *)(chunk + ((row_lines_at(segment) + line * TABLE_LINE_BYTES) &
					(TABLE_CHUNK_BYTES - TABLE_LINE_BYTES)));
}

static __always_inline __u64 row_key(const struct table_segment *segment, __u64 into)
{
	return TABLE_ROW_KEY(into & ((1u << (segment->bucket_shift & 15)) - 1));
}

/* Which word of the line: of the 15 behind the first all that are not behind the key come first. */
static __always_inline __u32 row_word(const __u32 *line, __u64 key)
{
	const __u32 mask = TABLE_LINE_WORDS - 1;
	__u32 at = 0;

	at += 8 & ~row_is_behind(line[8], key);
	at += 4 & ~row_is_behind(line[row_masked(at + 4, mask)], key);
	at += 2 & ~row_is_behind(line[row_masked(at + 2, mask)], key);
	at += 1 & ~row_is_behind(line[row_masked(at + 1, mask)], key);
	return row_masked(at, mask);
}

/* The row for the place `into` the segment, which lies in it. */
static __always_inline __u32 row_find(const struct table_segment *segment, __u64 into,
				      const __u8 *chunk)
{
	const __u32 *line = row_line(segment, into, chunk);
	__u64 key = row_key(segment, into);
	__u32 at = row_word(line, key);
	__u32 row = line[at], far = TABLE_ROW_OFFSET(line[0]);

	if (far && at == TABLE_LINE_ROWS_MAX - 1)
		return row_find_far(chunk,
				    row_lines_at(segment) +
					    4 * TABLE_ROW_RULE(line[TABLE_LINE_ROWS_MAX]),
				    far, key, row);
	return row;
}

/* Where in the segment the row that row_find gives holds; 0 bytes = it is not in the line. */
struct row_extent {
	__u64 start, bytes;
	__u32 row;
};

static __always_inline struct row_extent row_extent(const struct table_segment *segment, __u64 into,
						    const __u8 *chunk)
{
	const __u32 *line = row_line(segment, into, chunk);
	__u32 at = row_word(line, row_key(segment, into));
	__u64 bucket_bytes = 1ull << (segment->bucket_shift & 15);
	__u64 start = at ? TABLE_ROW_OFFSET(line[at]) : 0, end = bucket_bytes;
	struct row_extent extent = { .row = line[at] };
	__u32 next;

	if (TABLE_ROW_OFFSET(line[0]) && at == TABLE_LINE_ROWS_MAX - 1)
		return extent;
	next = at < TABLE_LINE_ROWS_MAX ? line[row_masked(at + 1, TABLE_LINE_WORDS - 1)]
					: TABLE_ROW_UNUSED;
	if (TABLE_ROW_OFFSET(next) < bucket_bytes)
		end = TABLE_ROW_OFFSET(next);
	extent.start = (into & ~(bucket_bytes - 1)) + start;
	extent.bytes = end - start;
	return extent;
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
