/* SPDX-License-Identifier: Apache-2.0 */
#include "base/idmap.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

#define IDMAP_SLOTS_MIN 64u
#define POPULATED_SLOTS_MIN ((size_t)1 << 13)
#define MAPPED_SLOTS_MIN ((size_t)1 << 18) /* in pages of their own */

uint32_t idmap_guess(const struct idmap *map, uint64_t hash)
{
	uint32_t tag = idmap_tag(hash);

	if (!map->slots)
		return IDMAP_NONE;
	for (uint32_t at = idmap_position(map, tag);; at = (at + 1) & map->mask) {
		uint64_t entry = map->slots[at];

		if (!entry)
			return IDMAP_NONE;
		if (entry >> 32 == tag)
			return (uint32_t)entry - 1;
	}
}

static void place(struct idmap *map, uint64_t entry)
{
	uint32_t at = idmap_position(map, (uint32_t)(entry >> 32));

	while (map->slots[at])
		at = (at + 1) & map->mask;
	map->slots[at] = entry;
}

static void free_slots(uint64_t *slots, size_t count)
{
	if (count < MAPPED_SLOTS_MIN)
		free(slots);
	else
		mem_unmap_pages(slots, count * sizeof(*slots));
}

/* Placing an entry reads first: see mem_populate. */
static uint64_t *new_slots(size_t count)
{
	uint64_t *slots = count < MAPPED_SLOTS_MIN ? mem_new_array(uint64_t, count)
						   : mem_map_pages(count * sizeof(*slots));

	if (count >= POPULATED_SLOTS_MIN)
		mem_populate(slots, count * sizeof(*slots));
	return slots;
}

static void grow(struct idmap *map)
{
	uint64_t *old = map->slots;
	size_t old_slots = old ? (size_t)map->mask + 1 : 0;
	size_t slots = old ? 2 * old_slots : IDMAP_SLOTS_MIN;

	map->slots = new_slots(slots);
	map->mask = (uint32_t)(slots - 1);
	for (size_t i = 0; i < old_slots; i++)
		if (old[i])
			place(map, old[i]);
	free_slots(old, old_slots);
}

void idmap_add(struct idmap *map, uint64_t hash, uint32_t id)
{
	assert(id != IDMAP_NONE);
	if (!map->slots || ((uint64_t)map->count + 1) * 4 > ((uint64_t)map->mask + 1) * 3)
		grow(map);
	place(map, ((uint64_t)idmap_tag(hash) << 32) | ((uint64_t)id + 1));
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
	free_slots(map->slots, map->slots ? (size_t)map->mask + 1 : 0);
	*map = (struct idmap){ 0 };
}
