/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * space - the executable mappings of a process image, as the BPF programs keep them.
 *
 * One head per process, and its mappings in parts, so that a small process takes little memory.
 * Read by the walk (walk.h); written by space.bpf.h, or by the agent from /proc where the kernel
 * cannot list mappings (attach/sampler.h).
 */
#ifndef FIRN_AGENT_BPF_SPACE_H
#define FIRN_AGENT_BPF_SPACE_H

#include "agent/bpf/shared.h"

#define SPACE_PROGRAM_MAPPINGS_MAX (SPACE_PART_MAPPINGS * SPACE_PARTS_MAX)
#define SPACES_MAX 4096
#define SPACE_PARTS_ENTRIES 8192
#define SPACE_MOMENT_SHIFT 20 /* a moment is 2^20 ns */

struct space_head {	/* value of the map `spaces`, by tgid */
	__u64 start_ns; /* with exec_id: whose mappings these are */
	__u32 exec_id;
	__u32 parts;		/* 0 = the agent was asked for them, at `fingerprint` */
	__u64 executable_pages; /* mm->exec_vm when they were read */
	__u64 fingerprint;	/* of all mappings: another one for another list */
	__u64 sent;		/* the fingerprint when the agent was last told */
	__u32 flags;		/* enum space_record_flag */
	__u32 differs_since;	/* in moments: when a sample saw that the list may be old; or 0 */
	__u64 firsts[SPACE_PARTS_MAX]; /* first address of each part */
};

struct space_part_key {
	__u32 tgid, part;
};

struct space_part { /* value of the map `space_parts` */
	__u64 start_ns;
	__u32 exec_id;
	__u32 count;
	struct space_mapping mappings[SPACE_PART_MAPPINGS]; /* by address */
};

#endif
