/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate - the selected rows of a segment, summed per stack and group.
 *
 * One dense counter per slot of the segment and group that occurs in it: 4 bytes for rows whose
 * values are all 1, 8 for others, 16 where the values of one segment have different weights
 * (mean.h) or a sum leaves 64 bits. If that would take much memory for few rows (many groups),
 * counters are sparse instead (sparse.h). A row costs one or two sequential reads and one addition,
 * no hashing; neighbouring reports of one group are one run. Sums are exact. The counters live for
 * one call; sums that are not zero go to `ret`, in `into`.
 */
#ifndef FIRN_SERVER_QUERY_SUM_ACCUMULATE_H
#define FIRN_SERVER_QUERY_SUM_ACCUMULATE_H

#include "server/query/select/mean.h"
#include "server/query/select/select.h"

/* Many: 24 bytes, not 32. */
struct accumulate_sum {
	mean_wide value; /* times the selection's denominator */
	uint32_t stack;	 /* slot of the segment; after accumulate_find_nodes its node */
	uint32_t group;
} __attribute__((packed, aligned(8)));

/* Ordered by group, then stack. */
struct accumulate_sums {
	struct accumulate_sum *list;
	size_t count;
	uint64_t rows; /* that were added */
};

/*
 * Reads no stacks. `work` is the calling thread's; with `together` the whole team of
 * the query helps, and the calling thread must be the query's own.
 */
int accumulate_segment(struct selection *selection, struct work *work, struct select_segment *in,
		       bool together, struct arena *into, struct accumulate_sums *ret,
		       struct err *err);

/*
 * The same, but `take` gets the counters of each thread, by slot, during the call; they are to be
 * multiplied by `weight`. With several groups, or other kinds of counters, `take` is not called and
 * `ret` gets a list.
 */
struct accumulate_counters {
	const uint32_t *ones; /* either may be NULL; what a slot has is the sum of both */
	const int64_t *plain;
};
typedef int accumulate_take_f(void *context, struct work *work,
			      const struct accumulate_counters *counters, size_t count,
			      int64_t weight, struct err *err);
int accumulate_counts(struct selection *selection, struct work *work, struct select_segment *in,
		      bool together, accumulate_take_f *take, void *context, struct arena *into,
		      struct accumulate_sums *ret, struct err *err);

/* The nodes of the slots, once the segment's stacks are loaded, in the order of the slots. */
void accumulate_rename(const struct segment *segment, struct accumulate_sums *sums);

/*
 * The nodes of the slots, once the segment's stacks are loaded; ordered by group, then node. False
 * when `scratch` is over budget.
 */
bool accumulate_find_nodes(const struct segment *segment, struct arena *scratch,
			   struct accumulate_sums *sums);

#endif
