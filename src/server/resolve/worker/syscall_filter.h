/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall_filter - what a process may still ask of the kernel once it reads hostile bytes: memory,
 * its open descriptors, its end. Nothing that reaches other processes, the network or, unless
 * wanted, other files; no new code, mapped or run.
 *
 * What libraries try and can do without fails with EACCES; anything else ends the process with
 * SIGSYS. Cannot be undone. Of the calling process, which has one thread.
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
