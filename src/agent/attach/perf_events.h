/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_events - the clocks that samples are taken by: perf's cpu-clock, one event per CPU.
 *
 * Events are opened disabled. The kernel removes the event of a CPU that goes offline, for good.
 */
#ifndef FIRN_AGENT_ATTACH_PERF_EVENTS_H
#define FIRN_AGENT_ATTACH_PERF_EVENTS_H

#include "base/err.h"
#include "base/slice.h"

struct bpf_link;

struct perf_clock {
	int fd; /* -1 = the link has it */
	int cpu;
	struct bpf_link *link; /* set and destroyed by who attaches a program to it */
};

struct perf_events {
	struct perf_clock *clocks;
	size_t count, capacity;
};

/* Adds a clock; 0 or -errno. */
int perf_events_open_cpu(struct perf_events *events, unsigned cpu, unsigned frequency_hz);

/* Every CPU that is online now. */
int perf_events_open_cpus(struct perf_events *events, unsigned frequency_hz, struct err *err);

void perf_events_close(struct perf_events *events);

#define PERF_EVENTS_CPUS_MAX 8192u

/* The CPUs that are online, in `ret` with room for PERF_EVENTS_CPUS_MAX. */
int perf_events_read_online(unsigned *ret, size_t *ret_count, struct err *err);

/* The CPUs of a list like "0-3,8" (/sys/devices/system/cpu/online); false when malformed. */
bool perf_events_parse_cpus(struct slice list, unsigned *ret, size_t max, size_t *ret_count);

#endif
