/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_cache - function indexes of segments that are asked for again and again, within a budget.
 *
 * An index is of one segment (model/segment.h: id), one way to show names and one version of the
 * resolver; segments never change, so nothing else makes it wrong. It is worth making when its
 * segment was asked about before, and there is room, or room can be had of what has not been used
 * by the last questions. What is not used for minutes leaves (its part may be gone). Thread-safe;
 * one lock, never held for long.
 */
#ifndef FIRN_SERVER_QUERY_INDEX_CACHE_H
#define FIRN_SERVER_QUERY_INDEX_CACHE_H

#include "server/query/function_index.h"

#define INDEX_CACHE_BYTES_DEFAULT ((size_t)64 << 20)

struct index_cache;

struct index_cache *index_cache_new(size_t limit_bytes);
void index_cache_free(struct index_cache *cache); /* accepts NULL; nothing may be in use */

/* A question's number: what was used by the last few is not given up for it. */
uint64_t index_cache_begin(struct index_cache *cache);

struct index_cache_key {
	uint64_t segment;
	uint64_t version; /* of the resolver */
	enum demangle_mode demangle;
};

/*
 * NULL: there is none. *ret_make: one of about so many bytes is worth making, by whoever was told
 * so. *ret_look: nobody has looked for a while whether binaries without symbols have some now.
 */
const struct function_index *index_cache_get(struct index_cache *cache, uint64_t question,
					     const struct index_cache_key *key, size_t bytes_about,
					     bool *ret_make, bool *ret_look);

/* Takes the index over, which is in use then, until index_cache_release. */
void index_cache_put(struct index_cache *cache, uint64_t question,
		     const struct index_cache_key *key, struct function_index *index);
void index_cache_release(struct index_cache *cache, const struct function_index *index);

/*
 * Zeroed memory for the sums of one question, given back when it ends: fresh pages would cost more
 * than what is counted in them. Little of it is kept, within the budget.
 */
void *index_cache_take_room(struct index_cache *cache, size_t bytes);
void index_cache_give_room(struct index_cache *cache, void *room, size_t bytes);

size_t index_cache_bytes(struct index_cache *cache);

#endif
