/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare - which changes of a diff are more than noise: the tests of significance.h for each
 * function of its tree, by itself and with what it called.
 *
 * The steps that have reports are divided into COMPARISON_BLOCKS_MAX blocks at most, with about as
 * many steps in each. Each block is queried as a tree of its own, so that names, filters and labels
 * mean what they do in the diff; its reports are read once more, and only one block is in memory.
 * If both sides have several series, these are queried likewise, in COMPARE_SERIES_MAX groups at
 * most.
 */
#ifndef FIRN_SERVER_QUERY_DIFF_COMPARE_H
#define FIRN_SERVER_QUERY_DIFF_COMPARE_H

#include "server/query/tree/comparison.h"
#include "server/query/query.h"

#define COMPARE_SERIES_MAX 24
#define COMPARE_REPORT_NS (10 * CLOCK_NS_PER_S) /* what agents send: a step is no shorter */

/* A side: as for query_diff, except that its source suits steps of compare_step. */
struct compare_side {
	const struct query_source *source;
	const struct query_params *params;
};

/*
 * The step of blocks over a range: whole hours or days if the range is long, so that roll-ups can
 * answer. report_ns: how long reports are.
 */
int64_t compare_step(int64_t from_ns, int64_t to_ns, int64_t report_ns);

/* Fills tree->comparison. Gauges, moments, and what is no count of samples: SIGNIFICANCE_NONE. */
int compare(struct tree *tree, const struct compare_side sides[static SIGNIFICANCE_SIDES],
	    int64_t report_ns, struct err *err);

/*
 * Fills tree->intervals of a tree that is no diff: the 95 % interval of each function's values
 * (significance_intervals), and of all values together, from their spread between blocks: `low` and
 * `high` of rate are values per second, relative to the mean.
 */
int compare_intervals(struct tree *tree, const struct compare_side *side, int64_t report_ns,
		      struct err *err);

/* How many samples a value of 1 stands for; 0 if values do not count samples: gauges, bytes. */
double compare_samples_per_value(const struct profile_type *type, int64_t period);

#endif
