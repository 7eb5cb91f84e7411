/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_times - the sums of a time series in which samples count at their own times (times.h).
 *
 * A line has room for every step of the range: there are at most QUERY_STEPS_MAX.
 */
#ifndef FIRN_SERVER_QUERY_SERIES_RANGE_TIMES_H
#define FIRN_SERVER_QUERY_SERIES_RANGE_TIMES_H

#include "server/query/select/select.h"

struct range_times_step {
	mean_wide value;
	uint32_t reports;     /* that have samples in it */
	uint32_t last_report; /* which of them came last, counted from 1; 0 = none */
};

struct range_times {
	struct selection *selection;
	bool line_per_series; /* else by group */
	int64_t first_ns, step_ns;
	size_t steps_count;
	struct range_times_step **lines; /* NULL: nothing on that line */
	size_t lines_count, lines_capacity;
	uint32_t reports;
	struct err *err;
};

/* Reads all that is selected. In the query's work memory. */
int range_times_collect(struct range_times *times);

#endif
