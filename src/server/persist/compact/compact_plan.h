/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact_plan - which parts to merge next: a pure function of the manifest.
 *
 * A part belongs to the window (2 h, then a day, from the epoch) of its last report. GRACE after a
 * window is over, its parts become one; while it lasts, sealed parts are gathered when there are
 * many. So a row is written once when sealed, once or twice until its two hours are one part, and
 * once for the day: at most four times. Late parts are merged into the part of their window when
 * they are half as large, else with each other when there are many.
 */
#ifndef FIRN_SERVER_PERSIST_COMPACT_COMPACT_PLAN_H
#define FIRN_SERVER_PERSIST_COMPACT_COMPACT_PLAN_H

#include "server/persist/part/part.h"

#define COMPACT_HOURS_NS ((int64_t)2 * 3600 * 1000000000)
#define COMPACT_DAY_NS ((int64_t)24 * 3600 * 1000000000)
#define COMPACT_HOURS_GRACE_NS ((int64_t)15 * 60 * 1000000000) /* what was sealed late has come */
#define COMPACT_DAY_GRACE_NS ((int64_t)3 * 3600 * 1000000000)
#define COMPACT_INPUTS_MAX 128u /* each has its dictionaries in memory at once */
#define COMPACT_GATHER_MIN 16u	/* sealed parts of a window that is not over */
#define COMPACT_LATE_MIN 8u	/* late parts that are few in bytes */
#define COMPACT_BYTES_MAX ((uint64_t)2 << 30)

struct compact_plan {
	uint64_t parts[COMPACT_INPUTS_MAX]; /* numbers, ascending by their last report */
	size_t parts_count;
	enum part_tier tier; /* of the result */
	uint64_t bytes;	     /* of all of them */
};

/*
 * False: nothing to do. No part becomes larger than `bytes_max`, by the sum of its inputs; a window
 * that holds more is several parts, ordered by time. `now_ns` INT64_MAX: every window is over.
 * Damaged parts are left out.
 */
bool compact_plan_next(const struct part_info *parts, size_t count, uint64_t bytes_max,
		       int64_t now_ns, struct compact_plan *ret);

/* The beginning of the window of a time. */
int64_t compact_window(int64_t at_ns, int64_t window_ns);

#endif
