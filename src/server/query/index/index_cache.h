/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_cache - function indexes of segments that are asked for again and again, within a budget.
 *
 * An index is of one or several segments (model/segment.h: id), one way to show names and one
 * version of the resolver; segments never change, so nothing else makes it wrong. It is worth
 * making when its segments were asked about before, and there is room, or room can be had of what
 * has not been used by the last queries. What is not used for minutes leaves (its parts may be
 * gone). Thread-safe; one lock, never held for long.
 */
#ifndef FIRN_SERVER_QUERY_INDEX_INDEX_CACHE_H
#define FIRN_SERVER_QUERY_INDEX_INDEX_CACHE_H

#include "server/query/index/function_index.h"

#define INDEX_CACHE_BYTES_DEFAULT ((size_t)64 << 20)

struct index_cache;

struct index_cache *index_cache_new(size_t limit_bytes);
void index_cache_free(struct index_cache *cache); /* accepts NULL; nothing may be in use */

/* A query's number: what was used by the last few is not given up for it. */
uint64_t index_cache_begin(struct index_cache *cache);

struct index_cache_key {
	uint64_t segment;
	uint64_t version; /* of the resolver */
	enum demangle_mode demangle;
};

struct index_cache_found {
	const struct function_index *index; /* NULL: there is none. In use until it is released */
	uint32_t member;		    /* of the index: the segment */
	bool due;			    /* one is worth making, by whoever is told so */
	bool look; /* for a while nobody looked whether binaries without symbols have some now */
};
struct index_cache_found index_cache_get(struct index_cache *cache, uint64_t query,
					 const struct index_cache_key *key);

/* True if there is room for one of about so many bytes. */
bool index_cache_make_room(struct index_cache *cache, uint64_t query, size_t bytes);

/*
 * Takes the index over, which is in use then. It takes the place of others of its segments; of
 * `key`, it has segments of its own.
 */
void index_cache_put(struct index_cache *cache, uint64_t query, const struct index_cache_key *key,
		     struct function_index *index);
void index_cache_release(struct index_cache *cache, const struct function_index *index);

size_t index_cache_bytes(struct index_cache *cache);

#endif
