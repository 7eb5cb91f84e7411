/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare - which changes of a diff are more than noise: the tests of significance.h for each
 * function of its tree, by itself and with what it called.
 *
 * Blocks are made of steps that have reports, COMPARISON_BLOCKS_MAX at most, with about as many
 * steps in each. Each is asked as a tree of its own, so that names, filters and labels mean what
 * they do in the diff, and its reports are read once more; memory is that of one block. Where both
 * sides have several series, these are read once more likewise, in COMPARE_SERIES_MAX groups at
 * most.
 */
#ifndef FIRN_SERVER_QUERY_DIFF_COMPARE_H
#define FIRN_SERVER_QUERY_DIFF_COMPARE_H

#include "server/query/tree/comparison.h"
#include "server/query/query.h"

#define COMPARE_SERIES_MAX 24
#define COMPARE_REPORT_NS (10 * CLOCK_NS_PER_S) /* what agents send: a step is no shorter */

/* A side: the same as query_diff's, but that its source suits steps of compare_step. */
struct compare_side {
	const struct query_source *source;
	const struct query_params *params;
};

/*
 * The step of blocks over a range: of whole hours or days where it is long, so that roll-ups can
 * answer. report_ns: how long reports are.
 */
int64_t compare_step(int64_t from_ns, int64_t to_ns, int64_t report_ns);

/* Fills tree->comparison. Gauges, moments, and what is no count of samples: SIGNIFICANCE_NONE. */
int compare(struct tree *tree, const struct compare_side sides[static SIGNIFICANCE_SIDES],
	    int64_t report_ns, struct err *err);

/*
 * Fills tree->intervals, of a tree that is no diff: the 95 % interval of each function's values
 * (significance_intervals), and of all values by how they vary from block to block: `low` and
 * `high` of rate are of values per second, relative to the mean.
 */
int compare_intervals(struct tree *tree, const struct compare_side *side, int64_t report_ns,
		      struct err *err);

/* How many samples a value of 1 is; 0 where that cannot be said: gauges, bytes. */
double compare_samples_per_value(const struct profile_type *type, int64_t period);

#endif
