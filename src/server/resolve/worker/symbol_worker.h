/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_worker - builds symbol tables in processes of their own, because the content of a file may
 * make them crash, hang or run out of memory.
 *
 * A worker is this program again (/proc/self/exe) with a hidden verb, so it is there even when the
 * program was deleted or is the only file. It gets descriptors and limits, nothing else: limited
 * memory, CPU time and file size, few system calls, low priority, no new privileges, first to go
 * when the host is out of memory. It ends with the thread that started it.
 */
#ifndef FIRN_SERVER_RESOLVE_WORKER_SYMBOL_WORKER_H
#define FIRN_SERVER_RESOLVE_WORKER_SYMBOL_WORKER_H

#include <stdatomic.h>

#include "server/resolve/read/symbol_reader.h"

/*
 * Called first in main: does a worker's task and returns its exit code, or returns -1 when this is
 * no worker. symbol_worker_build fails in programs that never called it.
 */
int symbol_worker_main(int argc, char **argv);

/*
 * As symbol_reader_write, in a worker; waits at most ten times its limit of CPU time; at most two
 * workers run at once. If debug information kills a worker, the table has symbols only, as after a
 * limit. `scratch_directory` is for its temporary files. ERR_CANCELLED when *cancelled (may be
 * NULL) becomes true. Thread-safe.
 */
int symbol_worker_build(const struct symbol_input *inputs, size_t count,
			const struct symbol_limits *limits, const char *scratch_directory,
			const _Atomic bool *cancelled, int out_fd, struct err *err);

/* Registers the module's metrics; call once. */
void symbol_worker_init(void);

#endif
