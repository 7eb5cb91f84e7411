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

#define IDMAP_NONE UINT32_MAX /* never a valid id */

struct idmap {
	uint64_t *slots; /* 0 = empty, else (high hash bits << 32 | id + 1) */
	uint32_t mask;	 /* slots - 1 */
	uint32_t count;
};

/* Whether the object `id` equals the `key` given to idmap_find. */
typedef bool idmap_equal_f(const void *context, uint32_t id, const void *key);

uint32_t idmap_find(const struct idmap *map, uint64_t hash, idmap_equal_f *equal,
		    const void *context, const void *key);

/*
 * For who looks up many: brings near what a look-up will read first, and then guesses its answer
 * (IDMAP_NONE: surely absent), so that the caller can bring that object near too.
 */
void idmap_prefetch(const struct idmap *map, uint64_t hash);
uint32_t idmap_guess(const struct idmap *map, uint64_t hash);

/* Adds an id that idmap_find did not find. */
void idmap_add(struct idmap *map, uint64_t hash, uint32_t id);

void idmap_clear(struct idmap *map); /* keeps the memory */
void idmap_free(struct idmap *map);

#endif
