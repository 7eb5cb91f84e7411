/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace - whether a body is transferred fast enough.
 *
 * A peer that sends or reads a byte from time to time would keep a connection for ever. Therefore a
 * body must neither stall for PACE_STALL_NS nor fall below PACE_BYTES_PER_S_MIN on average.
 */
#ifndef FIRN_NET_HTTP_PACE_H
#define FIRN_NET_HTTP_PACE_H

#include "base/clock.h"

#include <stdbool.h>

#define PACE_STALL_NS (30 * CLOCK_NS_PER_S)
#define PACE_BYTES_PER_S_MIN 1024

/* The stricter limits while others wait for the memory that the body holds. */
#define PACE_SHORT_NS (2 * CLOCK_NS_PER_S)
#define PACE_SHORT_BYTES_PER_S_MIN (128 * 1024)

struct pace {
	int64_t begun_at_ns, moved_at_ns;
	int64_t bytes;
};

static inline void pace_begin(struct pace *pace, int64_t now_ns)
{
	*pace = (struct pace){ .begun_at_ns = now_ns, .moved_at_ns = now_ns };
}

static inline void pace_move(struct pace *pace, int64_t now_ns, size_t bytes)
{
	pace->bytes += (int64_t)bytes;
	if (bytes)
		pace->moved_at_ns = now_ns;
}

static inline bool pace_is_late(const struct pace *pace, int64_t now_ns)
{
	int64_t allowed_ns = PACE_STALL_NS + pace->bytes / PACE_BYTES_PER_S_MIN * CLOCK_NS_PER_S;

	return now_ns - pace->moved_at_ns > PACE_STALL_NS ||
	       now_ns - pace->begun_at_ns > allowed_ns;
}

static inline bool pace_is_late_when_short(const struct pace *pace, int64_t now_ns)
{
	int64_t elapsed_ns = now_ns - pace->begun_at_ns;

	return elapsed_ns > PACE_SHORT_NS &&
	       pace->bytes < elapsed_ns / CLOCK_NS_PER_S * PACE_SHORT_BYTES_PER_S_MIN;
}

#endif
