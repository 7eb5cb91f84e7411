/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege_filter - refuses kinds of system calls to this process (seccomp). A refused call fails:
 * with EPERM if it is of a kind below, with ENOSYS if we do not know the call, so that libraries
 * fall back as on older kernels. No process is killed. The kernel logs refused calls (audit type
 * 1326).
 *
 * docs/decisions/0012-agent-calls.md says why so.
 */
#ifndef FIRN_BASE_CONFINE_PRIVILEGE_FILTER_H
#define FIRN_BASE_CONFINE_PRIVILEGE_FILTER_H

#include "base/err.h"

/* Kinds of system calls. */
enum privilege_refusal {
	PRIVILEGE_NO_SYSTEM = 1,     /* the host itself, other processes, other namespaces */
	PRIVILEGE_NO_MOUNT = 2,	     /* file systems */
	PRIVILEGE_NO_IDENTITY = 4,   /* another user; capset only takes away */
	PRIVILEGE_NO_EXEC = 8,	     /* other programs */
	PRIVILEGE_NO_PROFILING = 16, /* events, BPF, the memory of other processes */
	PRIVILEGE_NO_NETWORK = 32,   /* sockets other than those that are there */
	PRIVILEGE_NO_CHANGE = 64,    /* files: made, changed, removed */
	PRIVILEGE_NO_PROCESS = 128,  /* more processes and threads */
	PRIVILEGE_ONLY_AGENT = 256,  /* all that an agent has no use for */
};

/* `refused` are bits of enum privilege_refusal. 0, or -1 with errno. */
MUST_USE int privilege_filter_calls(unsigned refused);

#endif
