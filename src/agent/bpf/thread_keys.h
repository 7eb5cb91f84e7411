/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * thread_keys - where the C library of a process keeps what is a thread's own: values of pthread
 * keys, and its copies of the variables of libraries. On x86-64, from the thread pointer on:
 *
 *   glibc  the first 32 keys, {sequence, value} each, and pointers to further blocks of 32; the
 *          vector of variables has {block, to be freed} for each module
 *   musl   a pointer to the values of all keys; the vector has a block for each module
 *
 * Plain C over walk_read (walk.h), as script.h is.
 */
#ifndef FIRN_AGENT_BPF_THREAD_KEYS_H
#define FIRN_AGENT_BPF_THREAD_KEYS_H

#include <stdbool.h>

#include "agent/bpf/shared.h"

#define THREAD_KEYS_AT 0x310u
#define THREAD_KEY_BLOCKS_AT 0x510u
#define THREAD_KEYS_PER_BLOCK 32u
#define THREAD_KEYS_MAX 1024u
#define THREAD_VECTOR_AT 8u /* both */

/* Where a thread has the value of a key. `keys_at`: as in struct script_process. */
static __always_inline bool thread_key_find(__u64 thread, __u16 keys_at, __u32 key, __u64 *ret)
{
	__u64 at = thread + keys_at, values = 0;

	if (key >= THREAD_KEYS_MAX)
		return false;
	if (!keys_at && key < THREAD_KEYS_PER_BLOCK) {
		*ret = thread + THREAD_KEYS_AT + 16ull * key + 8;
		return true;
	}
	if (!keys_at)
		at = thread + THREAD_KEY_BLOCKS_AT + 8ull * (key / THREAD_KEYS_PER_BLOCK);
	if (walk_read(&values, sizeof(values), at))
		return false;
	*ret = values + (keys_at ? 8ull * key : 16ull * (key % THREAD_KEYS_PER_BLOCK) + 8);
	return values != 0;
}

/* Where a thread has the variables of a module. */
static __always_inline bool thread_block_find(__u64 thread, __u16 keys_at, __u64 module, __u64 *ret)
{
	__u64 vector = 0;

	return module && !walk_read(&vector, sizeof(vector), thread + THREAD_VECTOR_AT) &&
	       !walk_read(ret, sizeof(*ret), vector + (keys_at ? 8 : 16) * module);
}

#endif
