/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison - the result of compare.h: for each function of a tree, whether a change is more than
 * noise, or how exactly its value is known. Owned by the tree.
 */
#ifndef FIRN_SERVER_QUERY_TREE_COMPARISON_H
#define FIRN_SERVER_QUERY_TREE_COMPARISON_H

#include "server/query/tree/functions.h"
#include "server/query/significance/significance.h"

#define COMPARISON_BLOCKS_MAX 24

/* The two values that are compared for a function: self and total. */
enum comparison_what { COMPARISON_SELF, COMPARISON_TOTAL, COMPARISON_WHATS };

struct comparison {
	struct functions functions;	 /* of the diff's tree */
	struct significance_test *tests; /* [row * COMPARISON_WHATS + what] */
	struct significance of;
	struct significance_mean rate; /* values per second */
	double rates[SIGNIFICANCE_SIDES][COMPARISON_BLOCKS_MAX];
	int64_t block_ns[SIGNIFICANCE_SIDES]; /* a block's usual length */
};

void comparison_free(struct comparison *comparison); /* accepts NULL */

#endif
