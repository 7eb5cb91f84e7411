/* SPDX-License-Identifier: Apache-2.0 */
/*
 * throttle - limits the disk bandwidth and the CPU time of background work.
 *
 * The working thread reports the bytes that it read or wrote, and waits until these bytes and its
 * CPU time since throttle_begin are within the budget. One thread works; throttle_stop may come
 * from any.
 */
#ifndef FIRN_SERVER_PERSIST_DISK_THROTTLE_H
#define FIRN_SERVER_PERSIST_DISK_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/lock.h"

struct throttle {
	uint64_t bytes_per_s;	  /* 0 = as fast as it goes, likewise the next */
	unsigned int cpu_percent; /* of one core */
	int64_t began_ns, cpu_began_ns;
	uint64_t bytes;
	struct lock lock;
	struct lock_condition changed;
	bool stopped; /* guarded by lock */
	bool woken;   /* likewise: throttle_wake since the last throttle_sleep */
};

void throttle_init(struct throttle *throttle, uint64_t bytes_per_s, unsigned int cpu_percent);
void throttle_fini(struct throttle *throttle);

void throttle_begin(struct throttle *throttle); /* a piece of work, with the thread that does it */

/* ERR_CANCELLED once stopped. Accepts NULL: 0. */
MUST_USE int throttle_check(struct throttle *throttle, struct err *err);

/*
 * Counts `bytes`, and waits until within the budget. ERR_CANCELLED once stopped. Accepts NULL: 0.
 */
MUST_USE int throttle_pause(struct throttle *throttle, uint64_t bytes, struct err *err);

/* Waits that long, or until woken, or until stopped: true then. */
bool throttle_sleep(struct throttle *throttle, int64_t duration_ns);
void throttle_wake(struct throttle *throttle); /* ends a throttle_sleep, or the next one */
void throttle_stop(struct throttle *throttle); /* for good */

#endif
