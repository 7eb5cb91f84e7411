/* SPDX-License-Identifier: Apache-2.0 */
/* append - the limits that every appended report is checked against, and the outcome of a batch. */
#ifndef FIRN_SERVER_PERSIST_BATCH_APPEND_H
#define FIRN_SERVER_PERSIST_BATCH_APPEND_H

#include <stdint.h>

#include "base/clock.h"

#define STORE_FUTURE_MAX_NS (600 * CLOCK_NS_PER_S) /* reports later than now + this are refused */
#define STORE_DEDUPE_NS                                                                            \
	(24 * 3600 * CLOCK_NS_PER_S) /* a replayed report counts once within this                  \
				      */

/* The outcome for the reports of one append. Refused reports are not an error of the call. */
struct append_result {
	uint32_t reports_stored;
	uint32_t reports_duplicate; /* seen before: (series, start, batch id) */
	uint32_t reports_late;	    /* older than retention */
	uint32_t reports_future;    /* beyond now + STORE_FUTURE_MAX_NS */
	uint32_t snapshots; /* of cumulative columns that had nothing to count from (baseline.h) */
	uint64_t rows_stored; /* those of snapshots too */
	char refused[160];    /* a sentence for the client about the first refused report, or "" */
};

#endif
