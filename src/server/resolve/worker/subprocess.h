/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subprocess - this program again, as a short-lived process of its own that does one task over
 * hostile bytes: with the descriptors it needs, limits of its own, and nothing else.
 */
#ifndef FIRN_SERVER_RESOLVE_WORKER_SUBPROCESS_H
#define FIRN_SERVER_RESOLVE_WORKER_SUBPROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/resolve/worker/launch.h"
#include "server/resolve/worker/syscall_filter.h"

#define SUBPROCESS_FD_FIRST LAUNCH_FD_FIRST /* the descriptors stand there, in their order */
#define SUBPROCESS_FDS_MAX LAUNCH_FDS_MAX
#define SUBPROCESS_POLL_MS 50

struct subprocess {
	pid_t pid; /* our own child; unless */
	int line;  /* the spawner's (spawner.h) when it is not -1 */
};

/*
 * Starts /proc/self/exe with arguments (NULL at the end), as launch.h says, by way of the spawner
 * where there is one; 0 or an errno.
 */
int subprocess_start(const int *fds, int count, char **args, struct subprocess *ret);

/*
 * Waits up to two seconds for the end of a process that has finished its task; kills it at once if
 * `is_late`. Returns the wait status.
 */
int subprocess_reap(const struct subprocess *process, bool is_late);

/*
 * Called by the process itself. Sets: low priority, first victim when memory is short, death with
 * its parent, no core dump, another user (if root started it), no capabilities (as root
 * CAP_DAC_READ_SEARCH if it opens files), no new privileges, resource limits, and few system calls
 * (syscall_filter.h; any other call kills it with SIGSYS). Under sanitizers neither memory nor
 * system calls are limited.
 */
struct subprocess_limits {
	const char *name;
	uint64_t cpu_seconds, file_bytes;
	uint64_t data_bytes, mapped_bytes;
	enum syscall_filter_files files;
};
/* False when it cannot be confined: then it must not go on. */
bool subprocess_confine(const struct subprocess_limits *limits);

#endif
