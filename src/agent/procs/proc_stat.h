/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_stat - the fields of /proc/PID/stat (proc_pid_stat(5)) that tell whether a process is still
 * the one a sample came from: its name, when it started, and whether its main thread has ended.
 */
#ifndef FIRN_AGENT_PROCS_PROC_STAT_H
#define FIRN_AGENT_PROCS_PROC_STAT_H

#include "base/slice.h"

struct proc_stat {
	struct slice name;    /* field 2 without its brackets; any bytes, brackets and blanks too */
	uint32_t parent_pid;  /* field 4 */
	bool ended;	      /* field 3 is 'Z' or 'X'; other threads may live on */
	uint64_t start_ticks; /* field 22: 1/100 s since boot (USER_HZ) */
};

#define PROC_STAT_NS_PER_TICK 10000000ull

/* The result points into `text`. False when malformed. */
bool proc_stat_parse(struct slice text, struct proc_stat *ret);

#endif
