/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trie_union - all stacks of several segments, selected or not, as one trie in pre-order.
 *
 * The stacks of a single segment are borrowed and stay loaded until trie_union_free; those of
 * several are loaded, copied and dropped one after the other. One thread.
 */
#ifndef FIRN_SERVER_QUERY_SUM_TRIE_UNION_H
#define FIRN_SERVER_QUERY_SUM_TRIE_UNION_H

#include "server/query/sum/trie.h"

struct trie_union {
	struct segment *const *segments;
	size_t segments_count;
	struct tables_view view; /* strings, frames, nodes */
	uint32_t **nodes;	 /* by segment, then slot */
	uint32_t *ends;		 /* by node: behind all below it */
	struct trie trie;
	bool with_trie, loaded;
};

/* Memory is the work's. trie_union_free is due in any case. Errors: those of reading, and the
 * work's.
 */
int trie_union_make(struct trie_union *united, struct work *work, struct segment *const *segments,
		    size_t count, struct err *err);
void trie_union_free(struct trie_union *united, struct work *work);

#endif
