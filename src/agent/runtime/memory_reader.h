/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_reader - reads another process's memory, or a test's. The content is hostile, and may
 * change between reads.
 */
#ifndef FIRN_AGENT_RUNTIME_MEMORY_READER_H
#define FIRN_AGENT_RUNTIME_MEMORY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_reader {
	/* All of the bytes, or false. */
	bool (*read)(void *context, uint64_t address, void *to, size_t len);
	void *context;
};

static inline bool memory_read(const struct memory_reader *memory, uint64_t address, void *to,
			       size_t len)
{
	return memory->read(memory->context, address, to, len);
}

/*
 * The memory of a process, by process_vm_readv. May block for as long as the process wants: pages
 * may be behind a file system, or a userfaultfd.
 */
struct process_memory {
	int pid;
};

struct memory_reader process_memory_reader(struct process_memory *process);

#endif
