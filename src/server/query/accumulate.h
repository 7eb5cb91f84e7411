/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate - the selected rows of a view, summed per stack and group.
 *
 * One dense counter per stack of the view and group that occurs in it (8 bytes; 16 where values
 * are weighted, see mean.h): a row costs two sequential reads and one addition, no hashing. Sums
 * stop at the ends of int64. The counters live for one view; what is not zero goes to `ret`.
 */
#ifndef FIRN_SERVER_QUERY_ACCUMULATE_H
#define FIRN_SERVER_QUERY_ACCUMULATE_H

#include "server/query/mean.h"
#include "server/query/select.h"

struct accumulate_sum {
	mean_wide value; /* times the selection's denominator */
	uint32_t stack;	 /* node of the view */
	uint32_t group;
};

/* Ordered by group, then stack. In the query's work memory. */
struct accumulate_sums {
	struct accumulate_sum *list;
	size_t count;
	uint64_t rows; /* that were added */
};

int accumulate_view(struct selection *selection, struct select_view *view,
		    struct accumulate_sums *ret, struct err *err);

#endif
