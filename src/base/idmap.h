/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap - a hash set of dense ids, the heart of interning.
 *
 * The objects live elsewhere (an array indexed by id); the map holds (32 bits of hash, id) in
 * open addressing and asks the caller's function whether a candidate is the one sought, so
 * equality is always exact. Zero-initialised is empty and valid. Not thread-safe.
 */
#ifndef FIRN_BASE_IDMAP_H
#define FIRN_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDMAP_NONE UINT32_MAX	  /* never a valid id */
#define IDMAP_ENTRY_BYTES_MAX 32u /* for who pays for entries: while the map grows */

struct idmap {
	uint64_t *slots; /* 0 = empty, else (high hash bits << 32 | id + 1) */
	uint32_t mask;	 /* slots - 1 */
	uint32_t count;
};

/* Whether the object `id` equals the `key` given to idmap_find. */
typedef bool idmap_equal_f(const void *context, uint32_t id, const void *key);

/*
 * Only 32 bits of a hash are kept, so they alone decide the position too: a growing map can then
 * move its entries without asking for the objects' hashes again.
 */
static inline uint32_t idmap_tag(uint64_t hash)
{
	return (uint32_t)(hash >> 32) ^ (uint32_t)hash;
}

static inline uint32_t idmap_position(const struct idmap *map, uint32_t tag)
{
	return (uint32_t)(((uint64_t)tag * 0x9e3779b97f4a7c15ull) >> 32) & map->mask;
}

/* Inline, because it is the innermost loop of interning and `equal` is known where it is called. */
static inline uint32_t idmap_find(const struct idmap *map, uint64_t hash, idmap_equal_f *equal,
				  const void *context, const void *key)
{
	uint32_t tag = idmap_tag(hash);

	if (!map->slots)
		return IDMAP_NONE;
	for (uint32_t at = idmap_position(map, tag);; at = (at + 1) & map->mask) {
		uint64_t entry = map->slots[at];
		uint32_t id = (uint32_t)entry - 1;

		if (!entry)
			return IDMAP_NONE;
		if (entry >> 32 == tag && equal(context, id, key))
			return id;
	}
}

/*
 * For batches of look-ups: idmap_prefetch prefetches the slot; idmap_guess then guesses the answer
 * (IDMAP_NONE: surely absent), so that the caller can prefetch the object, too.
 */
static inline void idmap_prefetch(const struct idmap *map, uint64_t hash)
{
	if (map->slots)
		__builtin_prefetch(&map->slots[idmap_position(map, idmap_tag(hash))]);
}

uint32_t idmap_guess(const struct idmap *map, uint64_t hash);

/* Adds an id that idmap_find did not find. */
void idmap_add(struct idmap *map, uint64_t hash, uint32_t id);

void idmap_clear(struct idmap *map); /* keeps the memory */
void idmap_free(struct idmap *map);

#endif
