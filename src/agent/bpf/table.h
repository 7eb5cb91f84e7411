/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * table - the unwind table of one binary as it lies in memory, in the cache file and in the BPF
 * maps: made by unwind/table_build, put in place by unwind/loader, read by the BPF unwinder.
 *
 * A table is one or more segments, each at most a chunk long. A segment covers whole blocks of
 * TABLE_BLOCK_BYTES of the *file* (offsets, not virtual addresses: what a mapping gives without
 * knowing ELF), without a gap. It has a line, the length of a processor's cache line, for each
 * bucket of 2^bucket_shift bytes, so that most look-ups touch one line of cold memory:
 *
 *   __u32 lines[buckets][TABLE_LINE_WORDS]
 *   __u32 far[far_count]                   rows that found no room in the line of their bucket
 *   struct unwind_rule rules[rule_count]   distinct ones, those that a row cannot say by itself
 *
 * Words of a line, each a TABLE_ROW:
 *
 *   0        the rule at the bucket's start, and in place of an offset how many rows are in `far`
 *   1 .. 15  rows behind the start by offset, then TABLE_ROW_UNUSED
 *   15       when there are rows in `far`: TABLE_ROW_FAR, and from the first line on the number
 *            of the word where they begin
 *
 * Where nothing is known the rule is UNWIND_CFA_NONE. The rule of an offset is that of the last
 * row that is not after it.
 *
 * All numbers are in the host's byte order: a table never leaves the host.
 */
#ifndef FIRN_AGENT_BPF_TABLE_H
#define FIRN_AGENT_BPF_TABLE_H

#include <linux/types.h>

#include "codec/elf/unwind_rule.h"

#define TABLE_CHUNK_BYTES (2u << 20) /* a power of two */
#define TABLE_CHUNKS_MAX 256u
#define TABLE_SEGMENTS_MAX 32u
#define TABLES_MAX 4096u /* binaries */

#define TABLE_BLOCK_SHIFT 12
#define TABLE_BLOCK_BYTES (1u << TABLE_BLOCK_SHIFT)
#define TABLE_BUCKET_SHIFT_MIN 6
#define TABLE_BUCKET_SHIFT_MAX 11

#define TABLE_LINE_BYTES 64u
#define TABLE_LINE_WORDS 16u
#define TABLE_LINE_ROWS_MAX 15u /* one less when there are others in `far` */

/*
 * A row: from `offset` in the bucket on, `rule` holds. All rows up to an offset are at most its
 * TABLE_ROW_KEY, while the two marks are larger than any.
 */
#define TABLE_RULE_BITS 20
#define TABLE_RULE_MASK ((1u << TABLE_RULE_BITS) - 1)
#define TABLE_ROW(offset, rule) ((__u32)(offset) << TABLE_RULE_BITS | (__u32)(rule))
#define TABLE_ROW_OFFSET(row) ((row) >> TABLE_RULE_BITS)
#define TABLE_ROW_RULE(row) ((row)&TABLE_RULE_MASK)
#define TABLE_ROW_KEY(offset) TABLE_ROW(offset, TABLE_RULE_MASK)
#define TABLE_ROW_UNUSED 0xffffffffu
#define TABLE_ROW_FAR (0xfffu << TABLE_RULE_BITS)

/*
 * The rule of a row: with TABLE_RULE_LISTED an index into `rules`. Else as nearly all are on
 * x86-64, where the return address is at CFA - 8: bit 0, CFA = rbp + offset, not rsp + offset;
 * then the offset / 8; then where the caller's rbp and rbx are: 0 in the register, n at
 * CFA - 8 - 8 * n. CFA = rsp + 0 cannot be: it stands for a rule that is only an enum unwind_cfa,
 * in the place of rbp.
 */
#define TABLE_RULE_LISTED (1u << 19)
#define TABLE_RULE_INDEX(rule) ((rule) & (TABLE_RULE_LISTED - 1))
#define TABLE_RULE_BY_FP(rule) ((rule)&1u)
#define TABLE_RULE_CFA(rule) ((rule) >> 1 & 1023u)
#define TABLE_RULE_IS_BARE(rule) (!((rule)&2047u))
#define TABLE_RULE_BARE(rule) TABLE_RULE_FP(rule)
#define TABLE_RULE_FP(rule) ((rule) >> 11 & 15u)
#define TABLE_RULE_BX(rule) ((rule) >> 15 & 15u)

/* Where a segment lies in a chunk: bytes from the chunk's start. */
struct table_segment {
	__u32 first_block; /* file offset of the first one >> TABLE_BLOCK_SHIFT */
	__u32 blocks;
	__u32 chunk;
	__u32 lines_at, rules_at; /* lines_at is a multiple of TABLE_LINE_BYTES */
	__u32 bucket_shift;
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

/* Why there is an entry without segments. */
enum table_missing {
	TABLE_NOT_MISSING,     /* the file has no unwind information */
	TABLE_MISSING_FAILED,  /* it could not be built, or the file not be opened */
	TABLE_MISSING_NO_ROOM, /* all memory for tables is in use */
	TABLE_MISSING_NO_ELF,  /* the file is no ELF file: what runs in it was generated */
};

/* Value of the map `tables`, by struct file_key. */
struct binary_tables {
	__u64 used_at_ns;     /* CLOCK_MONOTONIC, set by the unwinder */
	__u32 segments_count; /* 0 = see `missing` */
	__u32 missing;	      /* enum table_missing */
	struct table_segment segments[TABLE_SEGMENTS_MAX]; /* by first_block */
};

_Static_assert(sizeof(struct file_key) == 24, "no padding: a map key");
_Static_assert(sizeof(struct table_segment) == 24, "segment");

#endif
