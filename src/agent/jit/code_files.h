/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_files - finds and opens the files in which a process names its generated code, as it sees
 * them: in its root, with its own number in its PID namespace.
 *
 *   - /tmp/perf-PID.map, if it belongs to the process's user or to root and was written to since
 *     the process began (the same number may have had a map before, in the same container);
 *   - the jitdump file: runtimes map jit-PID.dump, or its first page, to make it known.
 *
 * Only regular files, never through a symbolic link in the last place, without side effects of
 * opening. Other processes open them (files/root_files.h): nothing that is done with what they give
 * can wait for a file system that hangs.
 */
#ifndef FIRN_AGENT_JIT_CODE_FILES_H
#define FIRN_AGENT_JIT_CODE_FILES_H

#include "agent/files/root_files.h"
#include "agent/jit/code_images.h"
#include "agent/jit/code_reader.h"
#include "agent/procs/process.h"
#include "model/tables.h"

struct code_files {
	struct code_file perf_map, jitdump; /* fd -1: there is none */
	enum frame_kind runtime;	    /* see code_name_runtime */
	bool is_stuck;			    /* one is where a file system does not answer */
	int64_t cpu_ns;			    /* that other processes took */
};

struct code_files_wish {
	const struct code_reader *perf_map, *jitdump; /* what is read of them already */
	bool look_at_mappings; /* else no jitdump is looked for, and the runtime is not told */
};

/*
 * False when the process is gone, or its number another's. Of files that have to be copied, what
 * the readers have not read yet. The caller closes the descriptors.
 */
bool code_files_open(struct root_files *files, const struct process_identity *identity,
		     const struct code_files_wish *wish, struct code_files *ret);

/*
 * Executable memory of the process that has one of the addresses, `count` ranges at most; how many
 * were found. 0 when the process is gone. Waits for no file system.
 */
size_t code_files_find_memory(const struct process_identity *identity, const uint64_t *addresses,
			      size_t count, struct code_memory_range *ret);

/* False when the process is gone, or its number another's. */
bool code_files_is_there(const struct process_identity *identity);

#endif
