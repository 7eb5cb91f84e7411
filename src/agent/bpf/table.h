/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * table - the unwind table of one binary as it lies in memory, in the cache file and in the BPF
 * maps: made by unwind/table_build, put in place by unwind/loader, read by the BPF unwinder.
 *
 * A table is one or more segments, each at most a chunk long. A segment covers whole buckets of
 * TABLE_BUCKET_BYTES of the *file* (offsets, not virtual addresses: what a mapping gives without
 * knowing ELF), without a gap:
 *
 *   __u32 index[buckets + 1]        index[b]: the last row at or before the start of bucket b;
 *                                   index[buckets]: the last row
 *   __u32 rows[row_count]           by offset; TABLE_ROW: offset in its bucket, and rule
 *   struct unwind_rule rules[rule_count]   distinct ones
 *
 * rows[0] is at the start of the segment; where nothing is known the rule is UNWIND_CFA_NONE. So
 * the row of an offset in bucket b is the last one that is not after it among index[b] ..
 * index[b + 1]: of these, all but the first lie in bucket b behind its start, or, if their low bits
 * are 0, at the start of the next.
 *
 * All numbers are in the host's byte order: a table never leaves the host.
 */
#ifndef FIRN_AGENT_BPF_TABLE_H
#define FIRN_AGENT_BPF_TABLE_H

#include <linux/types.h>

#include "codec/unwind_rule.h"

#define TABLE_CHUNK_BYTES (2u << 20) /* a power of two */
#define TABLE_CHUNKS_MAX 256u
#define TABLE_SEGMENTS_MAX 16u
#define TABLES_MAX 4096u /* binaries */

#define TABLE_BUCKET_SHIFT 10
#define TABLE_BUCKET_BYTES (1u << TABLE_BUCKET_SHIFT)
#define TABLE_BUCKET_MASK (TABLE_BUCKET_BYTES - 1)
#define TABLE_RULES_MAX (1u << (32 - TABLE_BUCKET_SHIFT))

#define TABLE_ROW(offset, rule)                                                                    \
	(((__u32)(rule) << TABLE_BUCKET_SHIFT) | ((__u32)(offset)&TABLE_BUCKET_MASK))
#define TABLE_ROW_OFFSET(row) ((row)&TABLE_BUCKET_MASK)
#define TABLE_ROW_RULE(row) ((row) >> TABLE_BUCKET_SHIFT)

/* Where a segment lies in a chunk: bytes from the chunk's start. */
struct table_segment {
	__u32 first_bucket; /* file offset of the first one >> TABLE_BUCKET_SHIFT */
	__u32 buckets;
	__u32 chunk;
	__u32 index_at, rows_at, rules_at;
};

/* Names the file behind a mapping, as the kernel knows it: not what stat() says on overlayfs. */
struct file_key {
	__u64 inode;
	__u64 device;	  /* s_dev */
	__s64 changed_ns; /* i_mtime */
};

/* The vdso is in no file; it is the same for all 64-bit processes. */
#define FILE_KEY_VDSO ((struct file_key){ .device = ~0ull })

/* Executable memory behind which there is no file: generated code. */
#define FILE_KEY_ANONYMOUS ((struct file_key){ 0 })

/* Value of the map `tables`, by struct file_key. */
struct binary_tables {
	__u64 used_at_ns;     /* CLOCK_MONOTONIC, set by the unwinder */
	__u32 segments_count; /* 0 = looked at, and has no unwind information */
	__u32 reserved;
	struct table_segment segments[TABLE_SEGMENTS_MAX]; /* by first_bucket */
};

_Static_assert(sizeof(struct file_key) == 24, "no padding: a map key");
_Static_assert(sizeof(struct table_segment) == 24, "segment");

#endif
