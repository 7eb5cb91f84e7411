/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexed - the segments of a query whose functions are indexed, and their sums.
 *
 * indexed_begin looks up or makes indexes for a table of functions; merge (merge.h) leaves these
 * segments out of its tries and sums them here. All calls but indexed_sum are for the query's own
 * thread. Sums live, and indexes are in use, until indexed_end.
 */
#ifndef FIRN_SERVER_QUERY_INDEX_INDEXED_H
#define FIRN_SERVER_QUERY_INDEX_INDEXED_H

#include "base/lock.h"
#include "server/query/sum/accumulate.h"
#include "server/query/index/index_cache.h"
#include "server/query/index/index_plan.h"

#define INDEXED_LIMIT_MAX 4096u /* rows of a table; with more, indexes save nothing */

/* The segments of one index. Several threads add to it. */
struct indexed_sums {
	const struct function_index *index;
	struct lock lock;
	int64_t *flats; /* by row that ends stacks; one more */
	int64_t *
		before; /* by stack: its value; when finished, those before it together; one more */
	bool unsuited;	/* values are negative, or too large: the rest means nothing */
};

struct indexed {
	struct selection *selection;
	const struct query_source *source;
	struct index_cache *cache;
	struct index_cache_key key; /* of a segment at a time */
	uint64_t query;
	struct index_candidate *candidates; /* in the work's arena, as all that follows */
	size_t candidates_count;
	struct indexed_sums *sums;
	size_t sums_count;
};

/* Sets `index` and `sums` of the selection's segments. indexed_end is due in any case. */
int indexed_begin(struct indexed *indexed, struct selection *selection,
		  const struct query_source *source, struct err *err);
void indexed_end(struct indexed *indexed);

/* As accumulate_segment, for a segment with an index, into its sums. */
int indexed_sum(struct selection *selection, struct work *work, struct select_segment *in,
		bool together, uint64_t *ret_rows, struct err *err);

/* Call it when all segments are summed. False: the indexes cannot be used for these values. */
bool indexed_finish(struct indexed *indexed);

#endif
