/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times - the values of a report's rows by the times of their samples (query.h: by_times).
 *
 * The value of a row is divided evenly among the samples whose times were kept. A row without kept
 * times counts at the start of its report.
 */
#ifndef FIRN_SERVER_QUERY_SELECT_TIMES_H
#define FIRN_SERVER_QUERY_SELECT_TIMES_H

#include "server/query/select/select.h"

struct times_row {
	uint32_t number; /* of its report */
	uint32_t label_set;
	int64_t value; /* of the series' column */
	int64_t start_ns;
	const struct moment *moments; /* with known ticks, or, for links, all */
	uint32_t moments_count;
	const struct trace_link *links; /* of the moments */
	uint32_t links_count;
};

struct times {
	const struct segment_block *block; /* with moments, if there are any */
	const struct segment_report *report;
	const int64_t *values; /* of the column; NULL: all are 1 */
	uint64_t value_stride;
	uint32_t row, moment;
	bool for_links; /* set after times_begin: moments whose tick is not known count too */
};

void times_begin(struct times *times, const struct select_segment *in,
		 const struct segment_block *block, const struct segment_report *report);

/* The rows in their order; false behind the last. */
bool times_next(struct times *times, struct times_row *ret);

/* The parts of a row, one per time (at least one), and when they were. They add up to its value. */
static inline uint32_t times_parts(const struct times_row *row)
{
	return row->moments_count ? row->moments_count : 1;
}
int64_t times_part(const struct times_row *row, uint32_t i, int64_t *ret_at_ns);

/* True if that time is in the range, and in one of the spans, if there are any. */
bool times_takes(const struct query_params *params, int64_t at_ns);

/* The parts of the row that are. */
int64_t times_within(const struct query_params *params, const struct times_row *row);

#endif
