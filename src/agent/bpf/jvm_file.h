/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * jvm_file - from HotSpot's library, as it lies in a file, to a process that maps it: for the
 * program in the kernel, and for the agent.
 */
#ifndef FIRN_AGENT_BPF_JVM_FILE_H
#define FIRN_AGENT_BPF_JVM_FILE_H

#include <stdbool.h>

#include "agent/bpf/shared.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define JVM_PAGE_BYTES 4096u

/* Moves a file's variables to where they are in a process. */
static __always_inline void jvm_move(struct jvm_roots *roots, __u64 bias)
{
	roots->heaps += bias;
	roots->interpreter += bias;
}

/* What virtual addresses are moved by, where a mapping is of the library's code; else false. */
static __always_inline bool jvm_bias(const struct jvm_file *file, __u64 start, __u64 offset,
				     __u64 *ret)
{
	__u64 into = offset - file->code_offset;

	/* A mapping begins with a page, which may be before the segment. */
	if (into >= file->code_bytes && file->code_offset - offset >= JVM_PAGE_BYTES)
		return false;
	*ret = start - (file->code_address + into);
	return true;
}

/* An entry for a process that maps the library there. */
static __always_inline void jvm_entry_of(struct jvm_entry *entry, const struct jvm_file *file,
					 __u64 bias)
{
	__builtin_memset(entry, 0, sizeof(*entry));
	entry->roots = file->roots;
	jvm_move(&entry->roots, bias);
	entry->process.layout = file->layout;
}

#endif
