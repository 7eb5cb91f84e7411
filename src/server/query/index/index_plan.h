/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_plan - which segments of a query get an index, and which get one together.
 *
 * Segments of one partition key (segment.h: key_hash) have much the same stacks, so they are
 * indexed together, up to INDEX_PLAN_BYTES_MAX of stacks. Old indexes are rebuilt into the new one
 * if the new segments outweigh them, or if there are many of similar size: so each segment is
 * indexed a few times at most, and a query meets few indexes. A pure function of what the cache
 * said.
 */
#ifndef FIRN_SERVER_QUERY_INDEX_INDEX_PLAN_H
#define FIRN_SERVER_QUERY_INDEX_INDEX_PLAN_H

#include "server/query/index/function_index.h"
#include "server/query/select/select.h"

#define INDEX_PLAN_BYTES_MAX ((size_t)64 << 20)
#define INDEX_PLAN_OLDS_MIN 4u /* so many are rebuilt although little is new */

/* A segment of the query. */
struct index_candidate {
	struct select_segment *in;
	const struct function_index *index; /* that it has; NULL: none */
	uint32_t member;
	bool holds; /* the index is in use by it */
	bool due;   /* it is to get one */
};

/* The candidates of one key, ordered by their segments' ids: some have the same. */
struct index_plan {
	struct index_candidate *candidates;
	size_t candidates_count;
	struct segment *
		*segments; /* to be indexed: those that are due, then those of old indexes */
	size_t count, due_count;
	const struct function_index **olds; /* that join in */
	size_t olds_count;
};

/* Orders candidates by key and id. */
void index_plan_sort(struct index_candidate *candidates, size_t count);

/* How many candidates from the first on have its key. */
size_t index_plan_partition(const struct index_candidate *candidates, size_t count);

/* False when over budget. Sets all but the candidates and their count. */
bool index_plan_make(struct index_plan *plan, struct arena *arena);

/* True if the index is one of those that join in. */
bool index_plan_joins(const struct index_plan *plan, const struct function_index *index);

/* About how much memory an index of so many segments takes. */
size_t index_plan_bytes(struct segment *const *segments, size_t count);

#endif
