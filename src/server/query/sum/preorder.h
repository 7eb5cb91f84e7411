/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preorder - the nodes of a merged trie in pre-order, and what is below each.
 *
 * Tries of parts are in pre-order already; others get an order. Starts zeroed, and may be made of
 * one trie after the other: its memory is an arena's.
 */
#ifndef FIRN_SERVER_QUERY_SUM_PREORDER_H
#define FIRN_SERVER_QUERY_SUM_PREORDER_H

#include "server/query/sum/merge_trie.h"

struct preorder_node {
	int64_t total; /* its value and all below */
	uint32_t size; /* it and all nodes below */
	uint32_t mark; /* the user's; undefined at first */
};

struct preorder {
	struct preorder_node *nodes;
	uint32_t *order; /* by place */
	uint32_t *next;	 /* by node: the place of its next child */
	size_t capacity, order_capacity;
	bool is_trivial; /* node i is at place i */
};

/* False when over budget. */
bool preorder_make(struct preorder *preorder, struct arena *arena, const struct merge_trie *trie);

static inline uint32_t preorder_node(const struct preorder *preorder, uint32_t place)
{
	return preorder->is_trivial ? place : preorder->order[place];
}

#endif
