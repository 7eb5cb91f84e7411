/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <assert.h>

#include "base/mem.h"

#define ARENA_CHUNK_BYTES ((size_t)64 * 1024)
#define ARENA_ALIGN ((size_t)16)

struct arena_chunk {
	struct arena_chunk *next;
	size_t used;
	size_t capacity;
	char bytes[] __attribute__((aligned(16)));
};

void arena_init(struct arena *arena, size_t budget_bytes)
{
	*arena = (struct arena){ .budget_bytes = budget_bytes };
}

void arena_free(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	arena_init(arena, arena->budget_bytes);
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
	size_t capacity = size > ARENA_CHUNK_BYTES / 4 ? size : ARENA_CHUNK_BYTES;
	struct arena_chunk *chunk = mem_calloc(1, sizeof(*chunk) + capacity);

	chunk->capacity = capacity;
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
