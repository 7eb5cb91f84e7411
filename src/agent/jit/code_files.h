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
 * opening. A file system may still keep its caller waiting for ever (FUSE): call this, and read,
 * where that does no harm.
 */
#ifndef FIRN_AGENT_JIT_CODE_FILES_H
#define FIRN_AGENT_JIT_CODE_FILES_H

#include "agent/procs/process.h"
#include "model/tables.h"

struct code_files {
	int perf_map, jitdump;	 /* descriptors, or -1 */
	enum frame_kind runtime; /* see code_name_runtime */
};

/* False when the process is gone, or its number another's. The caller closes the descriptors. */
bool code_files_open(const struct process_identity *identity, struct code_files *ret);

#endif
