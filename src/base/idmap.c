/* SPDX-License-Identifier: Apache-2.0 */
#include "base/idmap.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

#define IDMAP_SLOTS_MIN 64u

/*
 * Only the high 32 bits of a hash are kept, so they alone decide the position too: a growing map
 * can then move its entries without asking for the objects' hashes again.
 */
static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32) ^ (uint32_t)hash;
}

static uint32_t position_of(const struct idmap *map, uint32_t tag)
{
	return (uint32_t)(((uint64_t)tag * 0x9e3779b97f4a7c15ull) >> 32) & map->mask;
}

uint32_t idmap_find(const struct idmap *map, uint64_t hash, idmap_equal_f *equal,
		    const void *context, const void *key)
{
	uint32_t tag = tag_of(hash);

	if (!map->slots)
		return IDMAP_NONE;
	for (uint32_t at = position_of(map, tag);; at = (at + 1) & map->mask) {
		uint64_t entry = map->slots[at];
		uint32_t id = (uint32_t)entry - 1;

		if (!entry)
			return IDMAP_NONE;
		if (entry >> 32 == tag && equal(context, id, key))
			return id;
	}
}

void idmap_prefetch(const struct idmap *map, uint64_t hash)
{
	if (map->slots)
		__builtin_prefetch(&map->slots[position_of(map, tag_of(hash))]);
}

uint32_t idmap_guess(const struct idmap *map, uint64_t hash)
{
	uint32_t tag = tag_of(hash);

	if (!map->slots)
		return IDMAP_NONE;
	for (uint32_t at = position_of(map, tag);; at = (at + 1) & map->mask) {
		uint64_t entry = map->slots[at];

		if (!entry)
			return IDMAP_NONE;
		if (entry >> 32 == tag)
			return (uint32_t)entry - 1;
	}
}

static void place(struct idmap *map, uint64_t entry)
{
	uint32_t at = position_of(map, (uint32_t)(entry >> 32));

	while (map->slots[at])
		at = (at + 1) & map->mask;
	map->slots[at] = entry;
}

static void grow(struct idmap *map)
{
	uint64_t *old = map->slots;
	size_t old_slots = old ? (size_t)map->mask + 1 : 0;
	size_t slots = old ? 2 * old_slots : IDMAP_SLOTS_MIN;

	map->slots = mem_new_array(uint64_t, slots);
	map->mask = (uint32_t)(slots - 1);
	for (size_t i = 0; i < old_slots; i++)
		if (old[i])
			place(map, old[i]);
	free(old);
}

void idmap_add(struct idmap *map, uint64_t hash, uint32_t id)
{
	assert(id != IDMAP_NONE);
	if (!map->slots || ((uint64_t)map->count + 1) * 4 > ((uint64_t)map->mask + 1) * 3)
		grow(map);
	place(map, ((uint64_t)tag_of(hash) << 32) | ((uint64_t)id + 1));
	map->count++;
}

void idmap_clear(struct idmap *map)
{
	if (map->slots)
		memset(map->slots, 0, ((size_t)map->mask + 1) * sizeof(*map->slots));
	map->count = 0;
}

void idmap_free(struct idmap *map)
{
	free(map->slots);
	*map = (struct idmap){ 0 };
}
