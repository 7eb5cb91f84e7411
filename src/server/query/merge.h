/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - the sums of all segments as one trie of frames with one value per (stack, group).
 *
 * With a single segment that has data its own trie is used; several meet in a new one (trie.h).
 * Segments of one partition key come one behind the other, in units of bounded cost; units are
 * merged in several threads, each while its own small trie is still in the cache, and then put
 * together in their order. Values are rounded here, once (gauges), so that every format agrees with
 * every other; what rounds to zero is gone.
 */
#ifndef FIRN_SERVER_QUERY_MERGE_H
#define FIRN_SERVER_QUERY_MERGE_H

#include "server/query/trie.h"

struct merge_value {
	uint32_t stack; /* node of `view` */
	uint32_t group;
	int64_t value;
};

struct merge {
	struct tables_view view;    /* strings, frames, nodes */
	struct trie own;	    /* behind the view, unless it is a segment's */
	struct merge_value *values; /* ordered by group */
	size_t values_count;
	uint64_t rows;
};

/* merge_free is due in any case. */
int merge_segments(struct selection *selection, struct merge *ret, struct err *err);
void merge_free(struct merge *merge);

#endif
