/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounding - means as whole numbers that add up.
 *
 * A gauge's values are means (select/mean.h), and every answer shows whole numbers. Means are
 * rounded here alone, before any format is rendered, so that all formats agree.
 */
#ifndef FIRN_SERVER_QUERY_SHAPE_ROUNDING_H
#define FIRN_SERVER_QUERY_SHAPE_ROUNDING_H

#include "server/query/shape/filter_apply.h"
#include "server/query/shape/merge.h"

/*
 * Sets the values of a merge with means (merge.is_exact), and drops those that become 0. `groups`:
 * the name of each group, or NULL without group-by. With `diff`, group 1 is the base's, and rounded
 * by itself. Names and filters are those of the query; their view becomes that of the merge's trie.
 */
int rounding_apply(struct merge *merge, struct work *work, struct name_table *names,
		   struct filter_apply *applied, const struct slice *groups, bool diff,
		   struct err *err);

#endif
