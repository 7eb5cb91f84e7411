/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_popularity - orders frames by how often they occurred so far, while a trie is written or
 * read, so that a frame that is called from everywhere has a small number.
 *
 * A new frame joins at the end. A frame that occurs again swaps places with the first of those that
 * occurred as often. Frames must be below the count given.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_POPULARITY_H
#define FIRN_SERVER_PERSIST_PART_PART_POPULARITY_H

#include <stdlib.h>

#include "base/mem.h"

struct part_popularity {
	uint32_t *frames; /* by place */
	uint32_t *places; /* by frame */
	uint32_t *uses;	  /* by frame: how often */
	uint32_t *firsts; /* by how often: the first place of those uses so often */
	uint32_t count, firsts_capacity;
};

static inline struct part_popularity part_popularity_new(uint32_t frames)
{
	return (struct part_popularity){
		.frames = mem_new_array(uint32_t, frames),
		.places = mem_new_array(uint32_t, frames),
		.uses = mem_new_array(uint32_t, frames),
	};
}

static inline void part_popularity_free(struct part_popularity *popularity)
{
	free(popularity->frames);
	free(popularity->places);
	free(popularity->uses);
	free(popularity->firsts);
}

static inline void part_popularity_meet(struct part_popularity *popularity, uint32_t frame)
{
	uint32_t uses = popularity->uses[frame]++, place, other;

	while (popularity->firsts_capacity <= uses + 1) {
		uint32_t old = popularity->firsts_capacity;

		popularity->firsts_capacity = old ? 2 * old : 16;
		popularity->firsts = mem_realloc(popularity->firsts, popularity->firsts_capacity,
						 sizeof(uint32_t));
		for (uint32_t i = old; i < popularity->firsts_capacity; i++)
			popularity->firsts[i] = UINT32_MAX;
	}
	if (!uses) {
		place = popularity->count++;
	} else {
		place = popularity->firsts[uses]++;
		other = popularity->frames[place];
		popularity->frames[popularity->places[frame]] = other;
		popularity->places[other] = popularity->places[frame];
	}
	popularity->frames[place] = frame;
	popularity->places[frame] = place;
	if (place < popularity->firsts[uses + 1])
		popularity->firsts[uses + 1] = place;
}

#endif
