/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - flat and cum per function, straight from the merged tries: what render_top needs, without
 * the tree of functions, which costs ten times as much.
 *
 * The same rows as those that render_top makes of a tree; only for values that are not negative,
 * and without filters. One thread; lives in the query's work memory, the rows in the tree's.
 */
#ifndef FIRN_SERVER_QUERY_SHAPE_TABLE_H
#define FIRN_SERVER_QUERY_SHAPE_TABLE_H

#include "server/query/shape/merge.h"
#include "server/query/name/name.h"

/* True if a table says the same as a tree of these values. */
bool table_suffices(const struct query_params *params, const struct merge *merge);

/*
 * Fills rows, total and what is unresolved; the tree stays without nodes and functions. With a
 * limit (0 = none), rows that cannot be among so many first ones may be left out, unnamed.
 */
int table_into(struct tree *tree, struct work *work, const struct merge *merge,
	       struct name_table *names, size_t limit, struct err *err);

#endif
