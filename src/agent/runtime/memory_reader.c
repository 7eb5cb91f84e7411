/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/memory_reader.h"

#include <sys/uio.h>

static bool read_process(void *context, uint64_t address, void *to, size_t len)
{
	const struct process_memory *process = context;
	struct iovec local = { to, len }, remote = { (void *)(uintptr_t)address, len };

	return process_vm_readv(process->pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

struct memory_reader process_memory_reader(struct process_memory *process)
{
	return (struct memory_reader){ read_process, process };
}
