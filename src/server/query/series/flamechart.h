/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flamechart - stacks over time: a merged tree per step and lane, drawn side by side.
 *
 * A lane is a value of the label to group by. In a lane, stacks divide a step's width in proportion
 * to their values; the order within a step means nothing. A box that continues at the beginning of
 * the next step, below the same callers, is one box; stacks that continue are therefore placed
 * first. Boxes narrower than a 4,000th of the whole are left out.
 */
#ifndef FIRN_SERVER_QUERY_SERIES_FLAMECHART_H
#define FIRN_SERVER_QUERY_SERIES_FLAMECHART_H

#include "server/query/query.h"

#define FLAMECHART_STEPS_MAX 240
#define FLAMECHART_STEPS_DEFAULT 60
#define FLAMECHART_LANES_MAX 64
#define FLAMECHART_BOXES_MAX 400000

struct flamechart_box {
	uint32_t lane, depth, function;
	int64_t from_ns, to_ns;
	int64_t value;
};

struct flamechart_lane {
	struct slice name;
	int64_t total;
};

struct flamechart {
	struct arena arena; /* owns the texts */
	struct profile_type type;
	struct slice query;
	struct slice lane_label; /* that lanes are values of, or "" */
	int64_t period, total, filtered;
	uint64_t reports;  /* that there are in the range, whatever is shown of them */
	int64_t report_ns; /* the longest report: times are not known better */
	struct tree_function *functions; /* `unresolved` means nothing */
	size_t functions_count;
	struct flamechart_lane *lanes; /* largest first */
	size_t lanes_count, lanes_left_out;
	struct flamechart_box *boxes; /* in the order of lanes and steps */
	size_t boxes_count;
	bool has_times; /* samples counted at their own times (query.h), as far as they are known */
	uint64_t parts_unreadable;
};

/*
 * `params` groups by one label, or by none: one lane. ERR_LIMIT for more than FLAMECHART_STEPS_MAX
 * steps or too many boxes. flamechart_free is due after success.
 */
int flamechart_make(const struct query_source *source, const struct query_params *params,
		    int64_t step_ns, struct flamechart *ret, struct err *err);

/* The smallest round duration, whole milliseconds, that cuts a range into at most so many. */
int64_t flamechart_round_step(int64_t range_ns, int64_t parts);

void flamechart_free(struct flamechart *chart);

#endif
