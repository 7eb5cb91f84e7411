/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks - the merged values at full detail: every stack with its locations, lines and addresses.
 *
 * A location is a physical address: the run of frames that were inlined into one another and the
 * frame that they ended up in. For exports that keep detail.
 */
#ifndef FIRN_SERVER_QUERY_SHAPE_STACKS_H
#define FIRN_SERVER_QUERY_SHAPE_STACKS_H

#include "server/query/shape/merge.h"
#include "server/query/shape/filter_apply.h"

/* Fills lines, locations, stacks and stack_locations of `tree`; names and applied are at this trie.
 */
int stacks_into(struct tree *tree, struct work *work, const struct merge_trie *merge,
		struct name_table *names, struct filter_apply *applied, struct err *err);

#endif
