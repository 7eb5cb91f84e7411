/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_events - the clocks that samples are taken by: perf's cpu-clock, one event per CPU, or one
 * per thread of chosen processes with inheritance, so that threads and children born later count.
 *
 * Events are opened disabled. The set owns its file descriptors; an entry of -1 was given away.
 */
#ifndef FIRN_AGENT_ATTACH_PERF_EVENTS_H
#define FIRN_AGENT_ATTACH_PERF_EVENTS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/slice.h"

#define PERF_EVENTS_MAX 65536 /* CPUs or threads */

struct perf_events {
	int *fds;
	size_t count, capacity;
};

/* Every CPU that is online now. */
int perf_events_open_cpus(struct perf_events *events, unsigned frequency_hz, struct err *err);

/* Every thread of the processes; those that have ended meanwhile are left out. */
int perf_events_open_pids(struct perf_events *events, const pid_t *pids, size_t pids_count,
			  unsigned frequency_hz, struct err *err);

void perf_events_close(struct perf_events *events);

/* The CPUs of a list like "0-3,8" (/sys/devices/system/cpu/online); false when malformed. */
bool perf_events_parse_cpus(struct slice list, unsigned *ret, size_t max, size_t *ret_count);

#endif
