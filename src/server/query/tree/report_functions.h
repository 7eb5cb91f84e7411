/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_functions - the flat and cumulative value of each function of a tree, and its calls.
 * Recursion counts once: on a path only the outermost call of a function counts, and only the
 * outermost call of a pair of caller and callee.
 */
#ifndef FIRN_SERVER_QUERY_TREE_REPORT_FUNCTIONS_H
#define FIRN_SERVER_QUERY_TREE_REPORT_FUNCTIONS_H

#include "base/idmap.h"
#include "server/query/tree/tree.h"

struct report_edge {
	uint32_t caller, callee; /* functions; caller 0 (the root) is none */
	uint32_t open;		 /* while they are made: how often it is on the path */
	int64_t value;
};

struct report_functions {
	int64_t *flat, *cumulative;	      /* by function */
	int64_t *base_flat, *base_cumulative; /* of a diff: of the side compared to; else NULL */
	uint32_t *order; /* functions that occur, the largest flat value first */
	size_t count;
	struct report_edge *edges; /* distinct pairs, in the order of their appearance */
	size_t edges_count, edges_capacity;
	struct idmap map;
};

/* Cumulative and flat value over the base's; 0 when there is none. */
static inline int64_t report_cumulative_diff(const struct report_functions *functions, uint32_t id)
{
	if (!functions->base_flat)
		return 0;
	return functions->cumulative[id] - functions->base_cumulative[id];
}
static inline int64_t report_flat_diff(const struct report_functions *functions, uint32_t id)
{
	return functions->base_flat ? functions->flat[id] - functions->base_flat[id] : 0;
}

/* Brings `order` into that of cumulative values, the largest first. */
void report_functions_by_cumulative(struct report_functions *functions);
void report_functions_make(const struct tree *tree, struct report_functions *ret);
void report_functions_free(struct report_functions *functions);

#endif
