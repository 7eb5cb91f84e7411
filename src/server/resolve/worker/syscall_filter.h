/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall_filter - the system calls that a process which reads hostile bytes may still make:
 * memory, its open descriptors, exit. None that reaches other processes, the network or, unless
 * allowed, other files; no new code, mapped or run.
 *
 * Calls that libraries try but can do without fail with EACCES; any other call kills the process
 * with SIGSYS. Permanent, for the calling process, which has one thread.
 */
#ifndef FIRN_SERVER_RESOLVE_WORKER_SYSCALL_FILTER_H
#define FIRN_SERVER_RESOLVE_WORKER_SYSCALL_FILTER_H

#include <stdbool.h>

/* Where new files may come from, besides memory (memfd_create). */
enum syscall_filter_files {
	SYSCALL_FILTER_NO_FILES,
	SYSCALL_FILTER_READ_FILES, /* opened for reading alone */
};

/* False when the kernel has no such filters; nothing is limited then. Needs PR_SET_NO_NEW_PRIVS. */
bool syscall_filter_apply(enum syscall_filter_files files);

#endif
