/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * jvm_find - where HotSpot's generated code is, read of the process by what its library says of its
 * own variables. A sample that comes before the agent knows of the process is whole so.
 *
 *   CodeCache::_heaps -> array -> heap: memory, segment map
 *   AbstractInterpreter::_code -> queue of stubs: the interpreter
 *
 * Plain C over walk_read, as jvm.h is. While a runtime starts some of it is missing, or changes.
 */
#ifndef FIRN_AGENT_BPF_JVM_FIND_H
#define FIRN_AGENT_BPF_JVM_FIND_H

#include "agent/bpf/walk.h"

#define JVM_CODE_BYTES_MAX (4ull << 30)
#define JVM_SEGMENT_SHIFT_MAX 16u
#define JVM_SETTLE_NS 1000000000ull /* from when all is there until nothing changes any more */

/* Other CPUs read an entry while it is written: `is_settled` last, and first there. */
static __always_inline void jvm_in_order(void)
{
	__asm__ volatile("" : : : "memory");
}

static __always_inline bool jvm_word_at(__u64 address, __u64 *ret)
{
	return address && !walk_read(ret, sizeof(*ret), address) && *ret;
}

/* Widens the range that all code lies in. */
static __always_inline void jvm_widen(struct jvm_process *process, __u64 low, __u64 bytes)
{
	__u64 high = process->low + process->bytes;

	if (!process->bytes || low < process->low)
		process->low = low;
	if (low + bytes > high)
		high = low + bytes;
	process->bytes = high - process->low;
}

static __always_inline bool jvm_read_heap(struct jvm_process *process, __u32 index, __u64 heap,
					  const struct jvm_roots *roots)
{
	struct jvm_heap *to = &process->heaps[index & (JVM_HEAPS_MAX - 1)];
	__u32 shift = 0;
	__u64 high = 0;

	if (!jvm_word_at(heap + roots->heap_low, &to->low) ||
	    !jvm_word_at(heap + roots->heap_high, &high) || high <= to->low ||
	    high - to->low > JVM_CODE_BYTES_MAX ||
	    !jvm_word_at(heap + roots->segments_low, &to->segments) ||
	    walk_read(&shift, sizeof(shift), heap + roots->heap_shift) ||
	    shift > JVM_SEGMENT_SHIFT_MAX)
		return false;
	to->bytes = high - to->low;
	process->layout.segment_shift = shift;
	jvm_widen(process, to->low, to->bytes);
	return true;
}

static __always_inline void jvm_read_interpreter(struct jvm_process *process,
						 const struct jvm_roots *roots)
{
	__u64 queue = 0, start = 0;
	__u32 bytes = 0;

	if (!jvm_word_at(roots->interpreter, &queue) ||
	    !jvm_word_at(queue + roots->stubs_start, &start) ||
	    walk_read(&bytes, sizeof(bytes), queue + roots->stubs_bytes) ||
	    start - process->low >= process->bytes ||
	    bytes > process->bytes - (start - process->low))
		return;
	process->interpreter = start;
	process->interpreter_bytes = bytes;
}

/*
 * Sets where the code is; walk->jvm.process.bytes is 0 when there is none yet. What is there while
 * the interpreter is not can be walked as well.
 */
WALK_VERIFIED_ONCE long jvm_find_code(struct walk *walk, const struct jvm_roots *roots)
{
	struct jvm_process *process;
	__u64 array = 0, data = 0, heap = 0;
	__u32 count = 0;

	if (!walk || !roots)
		return -1;
	process = &walk->jvm.process;
	process->low = process->bytes = 0;
	process->interpreter = process->interpreter_bytes = 0;
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < JVM_HEAPS_MAX; i++)
		process->heaps[i].bytes = 0;
	if (!jvm_word_at(roots->heaps, &array) ||
	    walk_read(&count, sizeof(count), array + roots->array_count) || count > JVM_HEAPS_MAX ||
	    !jvm_word_at(array + roots->array_data, &data))
		return 0;
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < JVM_HEAPS_MAX; i++) {
		if (i >= count)
			break;
		if (!jvm_word_at(data + 8ull * i, &heap) ||
		    !jvm_read_heap(process, i, heap, roots)) {
			process->bytes = 0;
			return 0;
		}
	}
	process->heaps_count = count;
	if (process->bytes > JVM_CODE_BYTES_MAX)
		process->bytes = 0;
	jvm_read_interpreter(process, roots);
	return 0;
}

/*
 * Where its code is, by the process itself: until the runtime has surely started, each sample looks
 * anew.
 */
static __always_inline void find_jvm_code(struct walk *walk, struct jvm_entry *entry, __u64 now_ns)
{
	jvm_find_code(walk, &entry->roots);
	if (!walk->jvm.process.interpreter_bytes)
		return;
	if (!entry->whole_at_ns) {
		entry->whole_at_ns = now_ns;
	} else if (now_ns - entry->whole_at_ns > JVM_SETTLE_NS) {
		entry->process = walk->jvm.process;
		jvm_in_order();
		entry->is_settled = 1;
	}
}

#endif
