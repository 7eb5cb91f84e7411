/* SPDX-License-Identifier: Apache-2.0 */
/*
 * invert - a call tree upside down: functions at the top, their callers below.
 *
 * Without `function`: each node's self value, from it up to the root. With it: the outermost calls
 * of that function, with their total, from it up, so that the function is the one node at the top
 * and its callers are below. Group-by values stay the first level. Totals of the result are those
 * of the original (or the function's cumulative value).
 */
#ifndef FIRN_SERVER_QUERY_TREE_INVERT_H
#define FIRN_SERVER_QUERY_TREE_INVERT_H

#include "base/err.h"
#include "server/query/tree/tree.h"

/*
 * Replaces nodes, nodes_count, depth_max, total, base, base_total and places of a tree that is not
 * trimmed; stacks and locations stay. `function` is a name as shown, or empty. With `width_px` (0 =
 * none), nodes narrower than half a pixel may be left out, and cut and nodes_untrimmed are filled.
 * ERR_NO_MEMORY when the tree's arena has no room; the tree is as it was then.
 */
MUST_USE int tree_invert(struct tree *tree, struct slice function, uint32_t width_px,
			 struct err *err);

#endif
