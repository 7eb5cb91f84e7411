/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/work.h"

#include <assert.h>

#include "base/clock.h"

#define GROW_FROM 64u

void work_begin(struct work *work, const struct query_limits *limits)
{
	size_t memory_bytes =
		limits->memory_bytes ? limits->memory_bytes : WORK_MEMORY_BYTES_DEFAULT;

	*work = (struct work){
		.limit_bytes = memory_bytes / 2 + 1,
		.cancelled = limits->cancelled,
		.deadline_at_ns = limits->deadline_at_ns,
	};
	arena_init(&work->arena, work->limit_bytes);
}

void work_end(struct work *work)
{
	arena_free(&work->arena);
	for (size_t i = 0; i < work->maps_count; i++)
		idmap_free(work->maps[i]);
	work->maps_count = 0;
}

void work_add_map(struct work *work, struct idmap *map)
{
	assert(work->maps_count < WORK_MAPS_MAX && !map->slots);
	work->maps[work->maps_count++] = map;
}

void work_drop_map(struct work *work, struct idmap *map)
{
	assert(work->maps_count && work->maps[work->maps_count - 1] == map);
	idmap_free(map);
	work->maps_count--;
}

static size_t used_bytes(const struct work *work)
{
	size_t bytes = work->arena.used_bytes + work->other_bytes;

	for (size_t i = 0; i < work->maps_count; i++)
		if (work->maps[i]->slots)
			bytes += ((size_t)work->maps[i]->mask + 1) * sizeof(uint64_t);
	return bytes;
}

int work_over_budget(const struct work *work, struct err *err)
{
	return err_set(err, ERR_NO_MEMORY,
		       "query: needs more than its %zu MiB of memory; narrow the time range or the "
		       "matchers, or group by fewer labels",
		       2 * (work->limit_bytes >> 20));
}

int work_check(struct work *work, struct err *err)
{
	if (work->arena.over_budget || used_bytes(work) > work->limit_bytes)
		return work_over_budget(work, err);
	if (work->cancelled && atomic_load_explicit(work->cancelled, memory_order_relaxed))
		return err_set(err, ERR_CANCELLED, "query: cancelled");
	if (work->deadline_at_ns && clock_monotonic_ns() >= work->deadline_at_ns)
		return err_set(err, ERR_DEADLINE,
			       "query: out of time; narrow the time range or the matchers");
	return 0;
}

void *work_grown(struct arena *arena, const void *old, size_t element_bytes, size_t count,
		 size_t *capacity)
{
	size_t wanted = *capacity ? 2 * *capacity : GROW_FROM;
	void *grown = arena_alloc_array(arena, wanted, element_bytes);

	if (!grown)
		return NULL;
	if (count)
		memcpy(grown, old, count * element_bytes);
	*capacity = wanted;
	return grown;
}
