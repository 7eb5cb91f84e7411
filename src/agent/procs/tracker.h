/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker - every process image that has samples in the current window, and those still alive.
 *
 * Indexes are dense and stay valid until tracker_sweep, which is called when a window has been
 * turned into tables. Owned by the drain thread. Bounds: TRACKER_PROCESSES_MAX and
 * TRACKER_BYTES_MAX; over these the longest unseen are forgotten at the sweep (and read again from
 * /proc when they come back).
 */
#ifndef FIRN_AGENT_PROCS_TRACKER_H
#define FIRN_AGENT_PROCS_TRACKER_H

#include "agent/procs/process.h"

#define TRACKER_PROCESSES_MAX 16384
#define TRACKER_BYTES_MAX ((size_t)32 << 20)
#define TRACKER_FULL UINT32_MAX

struct tracker {
	struct process **items;
	size_t count, capacity;
	struct idmap map;	 /* by identity */
	struct idmap family_map; /* known images, by pid and by parent's pid */
	struct binaries binaries;
};

void tracker_init(struct tracker *tracker, bool announce_binaries);
void tracker_fini(struct tracker *tracker, int64_t now_ns);

/* The image of the sample, made when new; TRACKER_FULL when there is no room before a sweep. */
uint32_t tracker_get(struct tracker *tracker, const struct record_head *head, int64_t now_ns);

static inline struct process *tracker_process(const struct tracker *tracker, uint32_t index)
{
	return tracker->items[index];
}

/* Looks at a stack seen for the first time: its mappings and binaries, while they are there. */
void tracker_locate(struct tracker *tracker, uint32_t index, uint32_t thread,
		    const uint64_t *addresses, size_t count, int64_t now_ns);

/* Forgets images that have ended, and some more when over the bounds. Indexes change. */
void tracker_sweep(struct tracker *tracker, int64_t now_ns);

#endif
