/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trim - the tree of functions as a picture of some width shows it, straight from the merged tries.
 *
 * Top down: a node of the tree stands for nodes of the tries (its members). The functions of their
 * children are the node's children; a child narrower than half a pixel is cut with all below it: it
 * gets no node and no name. One reverse pass over each trie gives the totals first; tries need not
 * be merged. The nodes that stay have the values of the whole tree (collapse.h); only which frame
 * describes a function first may differ.
 *
 * For values that are not negative, without filters and groups. One thread; lives in the query's
 * work memory, the nodes in the tree's.
 */
#ifndef FIRN_SERVER_QUERY_SHAPE_TRIM_H
#define FIRN_SERVER_QUERY_SHAPE_TRIM_H

#include "server/query/shape/merge.h"
#include "server/query/name/name.h"

/* True if params ask for a trimmed tree; true if these values allow one. */
bool trim_is_wanted(const struct query_params *params);
bool trim_suffices(const struct query_params *params, const struct merge *merge);

/* Fills functions, nodes, cut, nodes_untrimmed, depth_max, total and what is unresolved. */
int trim_into(struct tree *tree, struct work *work, const struct merge *merge,
	      struct name_table *names, uint32_t width_px, struct err *err);

#endif
