/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_process - the process of `firn up` that reads source files of this host for the server: as
 * the user who started it (the one behind sudo or pkexec), without capabilities, network, other
 * programs and writing (PRIVILEGE_SOURCES), so that the kernel shows no file that he may not read.
 */
#ifndef FIRN_CLI_SOURCE_PROCESS_H
#define FIRN_CLI_SOURCE_PROCESS_H

#include <sys/types.h>

#include "base/err.h"

struct source_process {
	pid_t pid;   /* 0: there is none */
	int channel; /* the server's end; server_options.source_channel */
	uid_t uid;   /* of who started firn */
};

/* Forks; to be called before any thread is started and before privileges are given up. */
int source_process_start(struct source_process *ret, struct err *err);

/* Once the server has its end: it ends with the last copy of that. */
void source_process_leave(struct source_process *process);

/* Ends it, if it runs. */
void source_process_stop(struct source_process *process);

#endif
