/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/recent_frames.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

static_assert(sizeof(struct recent_place) == 40, "no padding");

static uint32_t slot_of(const struct recent_place *place)
{
	uint64_t hash = (uintptr_t)place->owner;

	for (size_t i = 0; i < sizeof(place->words) / sizeof(place->words[0]); i++)
		hash = hash_mix(hash, place->words[i]);
	return (uint32_t)(hash >> 32) & (RECENT_FRAMES - 1);
}

bool recent_frames_find(const struct recent_frames *frames, const struct recent_place *place,
			uint32_t *ret_frame, bool *ret_is_loop)
{
	uint32_t slot = slot_of(place);

	if (memcmp(&frames->slots[slot].place, place, sizeof(*place)) != 0 || !place->owner)
		return false;
	*ret_frame = frames->slots[slot].frame;
	*ret_is_loop = frames->slots[slot].is_loop;
	return true;
}

void recent_frames_put(struct recent_frames *frames, const struct recent_place *place,
		       uint32_t frame, bool is_loop)
{
	uint32_t slot = slot_of(place);

	assert(place->owner);
	frames->slots[slot].place = *place;
	frames->slots[slot].frame = frame;
	frames->slots[slot].is_loop = is_loop;
}
