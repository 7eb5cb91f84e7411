/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracepoints - perf events of the kernel's tracepoints, for programs to be attached to.
 *
 * A tracepoint's number is in tracefs. Where that is not mounted it is mounted for ourselves
 * alone: nothing of it shows in the file system (fsmount(2)).
 */
#ifndef FIRN_AGENT_ATTACH_TRACEPOINTS_H
#define FIRN_AGENT_ATTACH_TRACEPOINTS_H

#include "base/err.h"

/* Opens tracefs for all later calls, by who may mount it. */
void tracepoints_prepare(void);

/* Of "syscalls", "sys_exit_mmap". The file descriptor is the caller's; the event is on all CPUs. */
int tracepoints_open(const char *category, const char *name, int *ret_fd, struct err *err);

#endif
