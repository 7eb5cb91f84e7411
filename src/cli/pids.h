/* SPDX-License-Identifier: Apache-2.0 */
/* pids - the process ids of --pid PID[,PID]. */
#ifndef FIRN_CLI_PIDS_H
#define FIRN_CLI_PIDS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/slice.h"

#define PIDS_MAX 256

/* The id of a thread stands for its process. Processes that are not there are ERR_NOT_FOUND. */
int pids_parse(const char *text, pid_t pids[static PIDS_MAX], size_t *count, struct err *err);

#endif
