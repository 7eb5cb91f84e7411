/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - memory freed as a whole: one per request, query or batch.
 *
 * A chunked bump allocator with a byte budget. Over budget, arena_alloc returns NULL and
 * `over_budget` stays set, so a long computation may check once at its end. Pointers stay valid
 * until arena_free. Not thread-safe.
 */
#ifndef FIRN_BASE_ARENA_H
#define FIRN_BASE_ARENA_H

#include "base/slice.h"

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t used_bytes;	    /* given out, chunk headers not counted */
	size_t budget_bytes;	    /* 0 = no limit */
	bool over_budget;
};

void arena_init(struct arena *arena, size_t budget_bytes);
void arena_free(struct arena *arena); /* everything; the arena may be used again */

/*
 * Keeps large freed chunks, `bytes` at most, for the next arenas of any thread, because fresh pages
 * from the system cost more than clearing used ones. For a process that answers many requests.
 */
void arena_keep_spares(size_t bytes);
/* Frees the spare chunks that nobody took since the last call; returns the bytes that remain. */
size_t arena_age_spares(void);

/* Zeroed, 16-byte aligned. NULL when over budget. */
void *arena_alloc(struct arena *arena, size_t size);

/* Frees an object before the rest, if it is large enough to have a chunk of its own. Accepts NULL.
 */
void arena_drop(struct arena *arena, const void *object, size_t size);

/* Copies with a NUL after it. An empty slice when over budget. */
struct slice arena_copy(struct arena *arena, struct slice s);

#define arena_new(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define arena_new_array(arena, type, count)                                                        \
	((type *)arena_alloc_array((arena), (count), sizeof(type)))
void *arena_alloc_array(struct arena *arena, size_t count, size_t size);

#endif
