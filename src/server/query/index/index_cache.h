/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_cache - function indexes of segments that queries ask for repeatedly, within a budget.
 *
 * The key is the segments (model/segment.h: id), the demangle mode and the version of the resolver;
 * segments never change, so an index never becomes stale otherwise. An index is made when an
 * earlier query asked for its segments and there is room, or evicting indexes that the last queries
 * did not use makes room. An index that is not used for minutes is freed (its parts may be gone).
 * Thread-safe; one lock, never held for long.
 */
#ifndef FIRN_SERVER_QUERY_INDEX_INDEX_CACHE_H
#define FIRN_SERVER_QUERY_INDEX_INDEX_CACHE_H

#include "server/query/index/function_index.h"

#define INDEX_CACHE_BYTES_DEFAULT ((size_t)64 << 20)

struct index_cache;

struct index_cache *index_cache_new(size_t limit_bytes);
void index_cache_free(struct index_cache *cache); /* accepts NULL; nothing may be in use */

/* A query's number: indexes that the last few queries used are not evicted for it. */
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
 * Takes ownership of the index, which counts as in use. It replaces other indexes of its segments;
 * the segment of `key` does not count.
 */
void index_cache_put(struct index_cache *cache, uint64_t query, const struct index_cache_key *key,
		     struct function_index *index);
void index_cache_release(struct index_cache *cache, const struct function_index *index);

size_t index_cache_bytes(struct index_cache *cache);

#endif
