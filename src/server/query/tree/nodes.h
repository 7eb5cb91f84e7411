/* SPDX-License-Identifier: Apache-2.0 */
/* nodes - what can be done to a tree by its nodes alone, after it was made. */
#ifndef FIRN_SERVER_QUERY_TREE_NODES_H
#define FIRN_SERVER_QUERY_TREE_NODES_H

#include "base/err.h"
#include "server/query/tree/tree.h"

/*
 * Keeps only the stacks that begin, at the root, with calls of these functions (names as shown),
 * without the self values of those callers. Total becomes the value that is left. No diffs, no
 * groups.
 */
void tree_keep_calls(struct tree *tree, const struct slice *names, size_t count);

/*
 * Makes stacks, locations and lines of the nodes, without addresses and line numbers: of a diff,
 * their values are the differences. ERR_NO_MEMORY when the tree's arena has no room.
 */
int tree_stacks_of_nodes(struct tree *tree, struct err *err);

#endif
