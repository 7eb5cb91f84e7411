/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collapse - a trie of frames with values becomes the tree of functions.
 *
 * Each (stack, group) value walks its frames from the root, through the chain of functions of each
 * frame, and lands in one node per (parent, function); group-by values are the first level. Only
 * the part of a path that is new in its group is walked. Then one reverse pass gives the totals,
 * siblings are sorted, and the nodes are laid out in pre-order in `tree`.
 */
#ifndef FIRN_SERVER_QUERY_SHAPE_COLLAPSE_H
#define FIRN_SERVER_QUERY_SHAPE_COLLAPSE_H

#include "server/query/shape/merge.h"
#include "server/query/shape/filter_apply.h"

/*
 * Fills functions, nodes, depth_max, total and filtered. `group_names`: a function id per group, or
 * NULL. With `diff`, values of group 1 are the base's, and base, base_total and base_filtered are
 * filled too. With `places`, tree.places.
 */
int collapse_into(struct tree *tree, struct work *work, const struct merge *merge,
		  struct name_table *names, struct filter_apply *applied,
		  const uint32_t *group_names, bool diff, bool places, struct err *err);

#endif
