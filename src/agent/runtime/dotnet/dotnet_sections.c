/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/dotnet_sections.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"

#define LEVELS 5
#define LEVEL_POINTERS 256
#define FRAGMENTS_MAX 64 /* of one leaf */
#define STEPS_MAX 65536u
#define SECTION_BYTES_MAX ((uint64_t)1 << 32)
#define ADDRESS_END ((uint64_t)1 << 56)

#define FLAG_HEAP 2
#define FLAG_STUBS 4

struct search {
	struct code_memory *memory;
	const struct dotnet_layout *layout;
	struct dotnet_sections *ret;
	uint64_t last; /* the section that was added last: its neighbours in the tree lead to it */
	uint32_t steps;
};

/* A pointer whose lowest bit says something else. */
static uint64_t pointer_at(struct search *search, uint64_t address)
{
	return code_memory_u64(search->memory, address) & ~1ull;
}

static void add_section(struct search *search, uint64_t at)
{
	const struct dotnet_layout *layout = search->layout;
	struct code_memory *memory = search->memory;
	struct dotnet_sections *ret = search->ret;
	uint32_t flags = code_memory_u32(memory, at + layout->section_flags);
	struct dotnet_section section = {
		.start = code_memory_u64(memory, at + layout->section_begin),
		.end = code_memory_u64(memory, at + layout->section_end),
		.kind = DOTNET_IMAGE,
	};

	if (at == search->last || !at)
		return;
	search->last = at;
	if (section.start < 4096 || section.end <= section.start || section.end > ADDRESS_END ||
	    section.end - section.start > SECTION_BYTES_MAX || ret->count >= DOTNET_SECTIONS_MAX)
		return;
	section.object = code_memory_u64(memory, at + layout->section_module);
	if (flags & FLAG_HEAP) {
		section.kind = DOTNET_HEAP;
		section.object = code_memory_u64(memory, at + layout->section_heap);
	} else if (flags & FLAG_STUBS) {
		section.kind = DOTNET_STUBS;
	}
	mem_grow(ret->items, ret->count, ret->capacity);
	ret->items[ret->count++] = section;
}

/* A leaf covers 128 KB, and lists what lies in it. */
static void take_leaf(struct search *search, uint64_t fragment)
{
	for (int i = 0; i < FRAGMENTS_MAX && fragment; i++) {
		if (++search->steps > STEPS_MAX)
			return;
		add_section(search, code_memory_u64(search->memory, fragment + 24));
		fragment = pointer_at(search, fragment);
	}
}

static void take_level(struct search *search, uint64_t level, int depth)
{
	for (uint64_t i = 0; i < LEVEL_POINTERS; i++) {
		uint64_t next = pointer_at(search, level + 8 * i);

		if (!next)
			continue;
		if (++search->steps > STEPS_MAX || code_memory_is_spent(search->memory))
			return;
		if (depth < LEVELS)
			take_level(search, next, depth + 1);
		else
			take_leaf(search, next);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct dotnet_section *first = a, *second = b;

	if (first->start != second->start)
		return first->start < second->start ? -1 : 1;
	return (first->end > second->end) - (first->end < second->end);
}

/* What is there twice, or over another one, is left out. */
static void make_distinct(struct dotnet_sections *sections)
{
	size_t count = 0;

	for (size_t i = 0; i < sections->count; i++)
		if (!count || sections->items[i].start >= sections->items[count - 1].end)
			sections->items[count++] = sections->items[i];
	sections->count = count;
}

void dotnet_sections_read(struct code_memory *memory, const struct dotnet_layout *layout,
			  uint64_t map, struct dotnet_sections *ret)
{
	struct search search = { .memory = memory, .layout = layout, .ret = ret };

	take_level(&search, map, 1);
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_start);
	make_distinct(ret);
}

void dotnet_sections_fini(struct dotnet_sections *sections)
{
	free(sections->items);
	*sections = (struct dotnet_sections){ 0 };
}

const struct dotnet_section *dotnet_sections_find(const struct dotnet_sections *sections,
						  uint64_t address)
{
	size_t low = bisect(0, sections->count, i, sections->items[i].start <= address);

	if (!low || address >= sections->items[low - 1].end)
		return NULL;
	return &sections->items[low - 1];
}
