/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracepoints - perf events of the kernel's tracepoints, for programs to be attached to.
 *
 * A tracepoint's number is in tracefs. If tracefs is not mounted, it is mounted for this process
 * alone (fsmount(2)), invisible in the file system.
 */
#ifndef FIRN_AGENT_ATTACH_TRACEPOINTS_H
#define FIRN_AGENT_ATTACH_TRACEPOINTS_H

#include "base/err.h"

/* Opens tracefs for all later calls, while the privilege to mount it is there. */
void tracepoints_prepare(void);

/* Of "syscalls", "sys_exit_mmap". The file descriptor is the caller's; the event is on all CPUs. */
int tracepoints_open(const char *category, const char *name, int *ret_fd, struct err *err);

#endif
