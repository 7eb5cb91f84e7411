/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_trie - one trie of stacks with a value per (stack, group): what merge makes of segments.
 *
 * The view borrows from a segment's tables or from `own`; values and view live in the work's arena.
 */
#ifndef FIRN_SERVER_QUERY_SUM_MERGE_TRIE_H
#define FIRN_SERVER_QUERY_SUM_MERGE_TRIE_H

#include "server/query/sum/trie.h"

#include <assert.h>

struct merge_value {
	uint32_t stack; /* node of `view` */
	uint32_t group;
	int64_t value;
};

struct merge_trie {
	struct tables_view view;    /* strings, frames, nodes */
	struct trie own;	    /* behind the view, unless it is a segment's */
	struct merge_value *values; /* ordered by group */
	size_t values_count;
	/* By value, times a denominator: of means that are not rounded yet; else NULL. */
	const mean_wide *exact;
};

/* Asserts the order and the bounds of the values; called when a trie is complete. */
static inline void merge_trie_check(const struct merge_trie *trie)
{
	assert(trie->view.nodes_count > 0);
	assert(trie->values || !trie->values_count);
	for (size_t i = 0; i < trie->values_count; i++) {
		assert(trie->values[i].stack < trie->view.nodes_count);
		assert(!i || trie->values[i].group >= trie->values[i - 1].group);
	}
}

#endif
