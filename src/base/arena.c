/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <assert.h>
#include <string.h>

#include "base/lock.h"
#include "base/mem.h"

#define ARENA_CHUNK_BYTES ((size_t)64 * 1024)
#define ARENA_ALIGN ((size_t)16)
#define SPARE_FROM_BYTES ((size_t)256 * 1024)
#define SPARE_WASTE 4 /* a chunk may be larger than is needed by this part of it */

struct arena_chunk {
	struct arena_chunk *next;
	size_t used;
	size_t capacity;
	char bytes[] __attribute__((aligned(16)));
};

static struct {
	struct lock lock;	    /* guards the rest */
	struct arena_chunk *chunks; /* the last that was freed first */
	size_t bytes, bytes_max;
	size_t idle_bytes; /* the fewest that waited since they were aged */
} spares = { .lock = LOCK_INITIALIZER("arena.spares", LOCK_MEMORY) };

/* With `lock`: takes off what is too much, the oldest first: sizes that are not asked for any more.
 */
static struct arena_chunk *take_surplus(size_t bytes_max)
{
	struct arena_chunk *gone = NULL;

	while (spares.bytes > bytes_max) {
		struct arena_chunk **at = &spares.chunks;

		while ((*at)->next)
			at = &(*at)->next;
		spares.bytes -= (*at)->capacity;
		(*at)->next = gone;
		gone = *at;
		*at = NULL;
	}
	return gone;
}

static void free_chunks(struct arena_chunk *chunk)
{
	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
}

void arena_keep_spares(size_t bytes)
{
	struct arena_chunk *surplus;

	lock_take(&spares.lock);
	spares.bytes_max = bytes;
	surplus = take_surplus(bytes);
	if (spares.idle_bytes > spares.bytes)
		spares.idle_bytes = spares.bytes;
	lock_give(&spares.lock);
	free_chunks(surplus);
}

size_t arena_age_spares(void)
{
	struct arena_chunk *surplus;
	size_t bytes;

	lock_take(&spares.lock);
	assert(spares.idle_bytes <= spares.bytes);
	surplus = take_surplus(spares.bytes - spares.idle_bytes);
	bytes = spares.idle_bytes = spares.bytes;
	lock_give(&spares.lock);
	free_chunks(surplus);
	return bytes;
}

static void put_spare(struct arena_chunk *chunk)
{
	struct arena_chunk *surplus;

	lock_take(&spares.lock);
	chunk->next = spares.chunks;
	spares.chunks = chunk;
	spares.bytes += chunk->capacity;
	surplus = take_surplus(spares.bytes_max);
	if (spares.idle_bytes > spares.bytes)
		spares.idle_bytes = spares.bytes;
	lock_give(&spares.lock);
	free_chunks(surplus);
}

static bool suits(const struct arena_chunk *chunk, size_t size)
{
	return size <= chunk->capacity && chunk->capacity - size <= chunk->capacity / SPARE_WASTE;
}

/* A chunk for a large object, cleared; NULL: none fits. */
static struct arena_chunk *take_spare(size_t size)
{
	struct arena_chunk **at = &spares.chunks, *chunk;

	if (size < SPARE_FROM_BYTES)
		return NULL;
	lock_take(&spares.lock);
	while (*at && !suits(*at, size))
		at = &(*at)->next;
	chunk = *at;
	if (chunk) {
		*at = chunk->next;
		spares.bytes -= chunk->capacity;
		if (spares.idle_bytes > spares.bytes)
			spares.idle_bytes = spares.bytes;
	}
	lock_give(&spares.lock);
	if (chunk) {
		memset(chunk->bytes, 0, chunk->used);
		chunk->used = 0;
	}
	return chunk;
}

void arena_init(struct arena *arena, size_t budget_bytes)
{
	*arena = (struct arena){ .budget_bytes = budget_bytes };
}

static void drop_chunk(struct arena_chunk *chunk)
{
	if (chunk->capacity < SPARE_FROM_BYTES)
		free(chunk);
	else
		put_spare(chunk);
}

void arena_free(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		drop_chunk(chunk);
		chunk = next;
	}
	arena_init(arena, arena->budget_bytes);
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
	size_t capacity = size > ARENA_CHUNK_BYTES / 4 ? size : ARENA_CHUNK_BYTES;
	struct arena_chunk *chunk = take_spare(capacity);

	if (!chunk) {
		chunk = mem_calloc(1, sizeof(*chunk) + capacity);
		chunk->capacity = capacity;
	}
	if (arena->chunks && capacity == size) {
		/* A large object gets a chunk of its own behind the current one. */
		chunk->next = arena->chunks->next;
		arena->chunks->next = chunk;
	} else {
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk = arena->chunks;
	void *memory;

	if (size > SIZE_MAX / 2) {
		arena->over_budget = true;
		return NULL;
	}
	size = (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
	if (arena->budget_bytes && size > arena->budget_bytes - arena->used_bytes) {
		arena->over_budget = true;
		return NULL;
	}
	if (!chunk || chunk->capacity - chunk->used < size)
		chunk = add_chunk(arena, size);
	assert(chunk->capacity - chunk->used >= size);
	memory = chunk->bytes + chunk->used;
	chunk->used += size;
	arena->used_bytes += size;
	return memory;
}

void arena_drop(struct arena *arena, const void *object, size_t size)
{
	struct arena_chunk **at = &arena->chunks, *chunk;

	size = (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
	while (*at && ((*at)->bytes != object || (*at)->used != size))
		at = &(*at)->next;
	chunk = *at;
	if (!chunk)
		return;
	*at = chunk->next;
	arena->used_bytes -= size;
	drop_chunk(chunk);
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		arena->over_budget = true;
		return NULL;
	}
	return arena_alloc(arena, bytes);
}

struct slice arena_copy(struct arena *arena, struct slice s)
{
	char *copy = arena_alloc(arena, s.len + 1);

	if (!copy)
		return (struct slice){ "", 0 };
	if (s.len)
		memcpy(copy, s.data, s.len);
	return (struct slice){ copy, s.len };
}
