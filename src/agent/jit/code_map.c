/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/code_map.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"
#include "base/order/heap.h"

/* What a process writes may hold a NUL, which would end the text: it is cut there. */
static void add_part(struct strbuf *texts, struct slice part)
{
	size_t end = slice_find_byte(part, '\0');

	strbuf_add(texts, part.data, end == SIZE_MAX ? part.len : end);
	strbuf_add_byte(texts, '\0');
}

/* A text is a name, NUL, a file, NUL, and the four bytes of the line. */
static void add_text(struct strbuf *texts, const struct code_place *place)
{
	add_part(texts, place->name);
	add_part(texts, place->file);
	strbuf_add(texts, &place->line, sizeof(place->line));
}

static struct code_place text_at(const struct strbuf *texts, uint32_t offset)
{
	struct code_place place = { .name = slice_of(texts->data + offset) };

	place.file = slice_of(place.name.data + place.name.len + 1);
	memcpy(&place.line, place.file.data + place.file.len + 1, sizeof(place.line));
	return place;
}

static struct slice text_bytes(const struct strbuf *texts, uint32_t offset)
{
	struct code_place place = text_at(texts, offset);

	return slice_from(place.name.data,
			  place.name.len + place.file.len + 2 + sizeof(place.line));
}

struct code_map *code_map_ref(struct code_map *map)
{
	if (map)
		atomic_fetch_add_explicit(&map->references, 1, memory_order_relaxed);
	return map;
}

void code_map_unref(struct code_map *map)
{
	if (!map || atomic_fetch_sub_explicit(&map->references, 1, memory_order_acq_rel) > 1)
		return;
	free(map->ranges);
	strbuf_free(&map->texts);
	free(map);
}

static const struct code_range *range_of(const struct code_map *map, uint64_t address)
{
	size_t low = bisect(0, map ? map->count : 0, i, map->ranges[i].start <= address);

	if (!low || address - map->ranges[low - 1].start >= map->ranges[low - 1].bytes)
		return NULL;
	return &map->ranges[low - 1];
}

bool code_map_find(const struct code_map *map, uint64_t address, struct code_place *ret)
{
	const struct code_range *range = range_of(map, address);

	if (!range)
		return false;
	*ret = text_at(&map->texts, range->text);
	return true;
}

bool code_map_find_start(const struct code_map *map, uint64_t address, uint64_t *ret)
{
	const struct code_range *range = range_of(map, address);

	if (range)
		*ret = range->start;
	return range;
}

size_t code_map_bytes(const struct code_map *map)
{
	return map ? sizeof(*map) + map->count * sizeof(*map->ranges) + map->texts.capacity : 0;
}

static uint64_t hash_start(uint64_t start)
{
	return hash_bytes(&start, sizeof(start));
}

static bool begins_at(const void *context, uint32_t id, const void *key)
{
	const struct code_map_builder *builder = context;
	const uint64_t *start = key;

	return builder->added[id].range.start == *start;
}

bool code_map_builder_add(struct code_map_builder *builder, uint64_t start, uint32_t bytes,
			  const struct code_place *place)
{
	uint32_t id = (uint32_t)builder->count;
	uint64_t hash = hash_start(start);
	uint32_t first;

	if (builder->count == CODE_MAP_ADDED_MAX ||
	    builder->texts.len >= CODE_MAP_ADDED_TEXT_BYTES_MAX)
		return false;
	mem_grow(builder->added, builder->count, builder->capacity);
	builder->added[builder->count++] = (struct code_added){
		.range = { start, bytes, (uint32_t)builder->texts.len },
	};
	add_text(&builder->texts, place);
	first = idmap_find(&builder->by_start, hash, begins_at, builder, &start);
	if (first == IDMAP_NONE) {
		idmap_add(&builder->by_start, hash, id);
		first = id;
	}
	builder->added[first].newest = id;
	return true;
}

bool code_map_builder_find(const struct code_map_builder *builder, const struct code_map *base,
			   uint64_t start, struct code_place *ret)
{
	uint32_t first =
		idmap_find(&builder->by_start, hash_start(start), begins_at, builder, &start);
	const struct code_range *range = range_of(base, start);

	if (first != IDMAP_NONE)
		*ret = text_at(&builder->texts,
			       builder->added[builder->added[first].newest].range.text);
	else if (range && range->start == start)
		*ret = text_at(&base->texts, range->text);
	else
		return false;
	return true;
}

void code_map_builder_clear(struct code_map_builder *builder)
{
	builder->count = 0;
	idmap_clear(&builder->by_start);
	strbuf_clear(&builder->texts);
}

void code_map_builder_free(struct code_map_builder *builder)
{
	free(builder->added);
	idmap_free(&builder->by_start);
	strbuf_free(&builder->texts);
	*builder = (struct code_map_builder){ 0 };
}

/* One range on its way into a map. The higher the rank, the newer; those of the base have none. */
struct candidate {
	uint64_t start, end;
	struct slice text;
	uint32_t rank;
	uint32_t kept; /* where the text is in the new map, or NOT_KEPT */
};

#define NOT_KEPT UINT32_MAX

/* The candidates that hold the address which the sweep has come to: a heap, the newest on top. */
struct heap {
	struct candidate **items;
	size_t count;
};

static void heap_push(struct heap *heap, struct candidate *candidate)
{
	heap->items[heap->count] = candidate;
	heap_rise(heap->items, heap->count, a, b, a->rank > b->rank);
	heap->count++;
}

static void heap_pop(struct heap *heap)
{
	heap->items[0] = heap->items[--heap->count];
	heap_sink(heap->items, heap->count, 0, a, b, a->rank > b->rank);
}

struct building {
	struct code_map *map;
	size_t capacity;
	struct idmap by_text; /* ids are numbers of ranges */
	size_t dropped;
};

static bool has_text(const void *context, uint32_t id, const void *key)
{
	const struct code_map *map = context;
	const struct slice *text = key;

	return slice_equal(text_bytes(&map->texts, map->ranges[id].text), *text);
}

/* Makes sure that the new map has the candidate's text. False when there is no room for it. */
static bool keep_text(struct building *building, struct candidate *candidate)
{
	struct code_map *map = building->map;
	uint64_t hash;
	uint32_t same;

	if (candidate->kept != NOT_KEPT)
		return true;
	hash = hash_bytes(candidate->text.data, candidate->text.len);
	same = idmap_find(&building->by_text, hash, has_text, map, &candidate->text);
	if (same != IDMAP_NONE) {
		candidate->kept = map->ranges[same].text;
		return true;
	}
	if (map->texts.len + candidate->text.len > CODE_MAP_TEXT_BYTES_MAX)
		return false;
	candidate->kept = (uint32_t)map->texts.len;
	strbuf_add_slice(&map->texts, candidate->text);
	idmap_add(&building->by_text, hash, (uint32_t)map->count); /* the range to be added */
	return true;
}

/* Adds [start, end), which is the candidate's. */
static void emit(struct building *building, struct candidate *candidate, uint64_t start,
		 uint64_t end)
{
	struct code_map *map = building->map;
	struct code_range *last = map->count ? &map->ranges[map->count - 1] : NULL;

	/* Goes on after an older one that began in between, and is hidden. */
	if (last && last->text == candidate->kept && last->start + last->bytes == start &&
	    last->start >= candidate->start) {
		last->bytes = (uint32_t)(end - last->start);
		return;
	}
	if (map->count == CODE_MAP_RANGES_MAX || !keep_text(building, candidate)) {
		building->dropped++;
		return;
	}
	mem_grow(map->ranges, map->count, building->capacity);
	map->ranges[map->count++] =
		(struct code_range){ start, (uint32_t)(end - start), candidate->kept };
}

/* Goes through the addresses; the newest candidate of each gives its text. */
static void sweep(struct building *building, struct candidate *candidates, size_t count)
{
	struct heap heap = { .items = mem_calloc(count + 1, sizeof(*heap.items)) };
	uint64_t at = 0;
	size_t next = 0;

	while (next < count || heap.count) {
		uint64_t end;

		if (!heap.count && candidates[next].start > at)
			at = candidates[next].start;
		for (; next < count && candidates[next].start <= at; next++)
			heap_push(&heap, &candidates[next]);
		if (heap.items[0]->end <= at) {
			heap_pop(&heap);
			continue;
		}
		end = heap.items[0]->end;
		if (next < count && candidates[next].start < end)
			end = candidates[next].start;
		emit(building, heap.items[0], at, end);
		at = end;
	}
	free(heap.items);
}

static int by_start(const void *a, const void *b)
{
	const struct candidate *first = a, *second = b;

	return (first->start > second->start) - (first->start < second->start);
}

static struct candidate candidate_of(const struct code_range *range, const struct strbuf *texts,
				     uint32_t rank)
{
	return (struct candidate){ range->start, range->start + range->bytes,
				   text_bytes(texts, range->text), rank, NOT_KEPT };
}

struct code_map *code_map_build(const struct code_map_builder *builder, const struct code_map *base,
				size_t *ret_dropped)
{
	size_t old = base ? base->count : 0, count = old + builder->count;
	struct candidate *candidates = mem_new_array(struct candidate, count + 1);
	struct building building = { .map = mem_new(struct code_map) };

	for (size_t i = 0; i < old; i++)
		candidates[i] = candidate_of(&base->ranges[i], &base->texts, 0);
	for (size_t i = 0; i < builder->count; i++)
		candidates[old + i] =
			candidate_of(&builder->added[i].range, &builder->texts, (uint32_t)i + 1);
	qsort(candidates, count, sizeof(*candidates), by_start);
	atomic_init(&building.map->references, 1);
	sweep(&building, candidates, count);
	idmap_free(&building.by_text);
	free(candidates);
	*ret_dropped = building.dropped;
	return building.map;
}
