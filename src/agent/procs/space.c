/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/space.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"

void spaces_init(struct spaces *spaces, struct binaries *binaries)
{
	*spaces = (struct spaces){ .binaries = binaries };
}

static void drop_mappings(const struct mapping *mappings, size_t count, int64_t now_ns)
{
	for (size_t i = 0; i < count; i++)
		binary_unref(mappings[i].binary, now_ns);
}

static void space_free(struct space *space, int64_t now_ns)
{
	drop_mappings(space->mappings, space->count, now_ns);
	free(space);
}

void spaces_fini(struct spaces *spaces, int64_t now_ns)
{
	for (size_t i = 0; i < spaces->count; i++)
		space_free(spaces->items[i], now_ns);
	free(spaces->items);
	free(spaces->pending);
	idmap_free(&spaces->map);
	*spaces = (struct spaces){ 0 };
}

struct space *space_ref(struct space *space)
{
	if (space)
		space->references++;
	return space;
}

void space_unref(struct space *space)
{
	if (!space)
		return;
	assert(space->references > 0);
	space->references--;
}

static size_t bytes_of(size_t mappings)
{
	return sizeof(struct space) + mappings * sizeof(struct mapping);
}

size_t space_bytes(const struct space *space)
{
	return bytes_of(space->count);
}

void spaces_begin(struct spaces *spaces)
{
	assert(!spaces->pending_count);
}

bool spaces_add(struct spaces *spaces, uint64_t start, uint64_t end, uint64_t offset,
		enum mapping_kind kind, const struct file_key *key, int64_t now_ns)
{
	uint64_t last = spaces->pending_count ? spaces->pending[spaces->pending_count - 1].end : 0;

	if (start >= end || start < last || spaces->pending_count >= SPACE_MAPPINGS_MAX)
		return false;
	mem_grow(spaces->pending, spaces->pending_count, spaces->pending_capacity);
	spaces->pending[spaces->pending_count++] = (struct mapping){
		.start = start,
		.end = end,
		.offset = offset,
		.kind = kind,
		.binary = kind == MAPPING_FILE ? binaries_get(spaces->binaries, key, now_ns) : NULL,
	};
	return true;
}

struct binary *spaces_added(const struct spaces *spaces)
{
	return spaces->pending_count ? spaces->pending[spaces->pending_count - 1].binary : NULL;
}

/* The first of `count` mappings that ends behind the address. */
static size_t lower_bound(const struct mapping *mappings, size_t count, uint64_t address)
{
	return bisect(0, count, i, mappings[i].end <= address);
}

static int by_start(const void *a, const void *b)
{
	const struct mapping *first = a, *second = b;

	return (first->start > second->start) - (first->start < second->start);
}

void spaces_keep(struct spaces *spaces, const struct space *older)
{
	size_t fresh = spaces->pending_count;

	for (size_t i = 0; i < older->count && spaces->pending_count < SPACE_MAPPINGS_MAX; i++) {
		const struct mapping *old = &older->mappings[i];
		size_t at = lower_bound(spaces->pending, fresh, old->start);

		if (at < fresh && spaces->pending[at].start < old->end)
			continue;
		mem_grow(spaces->pending, spaces->pending_count, spaces->pending_capacity);
		spaces->pending[spaces->pending_count] = *old;
		binary_ref(spaces->pending[spaces->pending_count++].binary);
	}
	if (spaces->pending_count > fresh)
		qsort(spaces->pending, spaces->pending_count, sizeof(*spaces->pending), by_start);
}

struct sought {
	const struct mapping *mappings;
	size_t count;
};

static bool space_equal(const void *context, uint32_t id, const void *key)
{
	const struct spaces *spaces = context;
	const struct space *space = spaces->items[id];
	const struct sought *sought = key;

	return space->count == sought->count &&
	       (!sought->count ||
		!memcmp(space->mappings, sought->mappings, sought->count * sizeof(struct mapping)));
}

struct space *spaces_end(struct spaces *spaces, int64_t now_ns)
{
	struct sought sought = { spaces->pending, spaces->pending_count };
	uint64_t hash = hash_bytes(sought.mappings, sought.count * sizeof(struct mapping));
	uint32_t id = idmap_find(&spaces->map, hash, space_equal, spaces, &sought);
	struct space *space;

	spaces->pending_count = 0;
	if (id != IDMAP_NONE) {
		drop_mappings(sought.mappings, sought.count, now_ns);
		return space_ref(spaces->items[id]);
	}
	space = mem_calloc(1, bytes_of(sought.count));
	space->hash = hash;
	space->index = (uint32_t)spaces->count;
	space->count = (uint32_t)sought.count;
	if (sought.count)
		memcpy(space->mappings, sought.mappings, sought.count * sizeof(struct mapping));
	mem_grow(spaces->items, spaces->count, spaces->capacity);
	spaces->items[spaces->count++] = space;
	idmap_add(&spaces->map, hash, space->index);
	spaces->bytes += space_bytes(space);
	return space_ref(space);
}

/* True if the mapping's file has code there, were it mapped beyond its range as within. */
static bool has_code_at(const struct mapping *mapping, uint64_t address)
{
	const struct elf_info *elf = mapping->binary ? mapping->binary->elf : NULL;
	uint64_t offset = address - mapping->start + mapping->offset;

	if (!elf || (address < mapping->start && mapping->start - address > mapping->offset))
		return false;
	for (size_t i = 0; i < elf->segments_count; i++) {
		const struct elf_segment *segment = &elf->segments[i];

		if (segment->executable && offset >= segment->offset &&
		    offset - segment->offset < segment->file_bytes)
			return true;
	}
	return false;
}

static const struct mapping *find_neighbour(const struct space *space, size_t before, size_t after,
					    uint64_t address)
{
	if (before < space->count && has_code_at(&space->mappings[before], address))
		return &space->mappings[before];
	if (after < space->count && has_code_at(&space->mappings[after], address))
		return &space->mappings[after];
	return NULL;
}

const struct mapping *space_find(const struct space *space, uint64_t address)
{
	const struct mapping *mapping, *neighbour;
	size_t at;

	if (!space)
		return NULL;
	at = lower_bound(space->mappings, space->count, address);
	if (at == space->count || space->mappings[at].start > address)
		return find_neighbour(space, at - 1, at, address);
	mapping = &space->mappings[at];
	if (mapping->kind != MAPPING_ANONYMOUS)
		return mapping;
	neighbour = find_neighbour(space, at - 1, at + 1, address);
	return neighbour ? neighbour : mapping;
}

const struct mapping *space_find_near(const struct space *space, const struct mapping *near,
				      uint64_t address)
{
	if (near && near->kind != MAPPING_ANONYMOUS && address >= near->start &&
	    address < near->end)
		return near;
	return space_find(space, address);
}

bool mapping_is_elf(const struct mapping *mapping, uint64_t address)
{
	uint64_t unused;

	return mapping && mapping->kind == MAPPING_FILE && mapping->binary &&
	       mapping->binary->elf &&
	       elf_offset_to_address(mapping->binary->elf,
				     address - mapping->start + mapping->offset, &unused);
}

bool mapping_is_generated(const struct mapping *mapping)
{
	const struct binary *binary;

	if (!mapping || mapping->kind != MAPPING_FILE)
		return !mapping || mapping->kind == MAPPING_ANONYMOUS;
	binary = mapping->binary;
	return binary && binary->opened && !binary->elf;
}

static void check_mappings(const struct space *space)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < space->count; i++) {
		const struct mapping *mapping = &space->mappings[i];

		assert(mapping->start >= last && mapping->start < mapping->end);
		assert(!mapping->binary || mapping->kind == MAPPING_FILE);
		assert(!mapping->binary || mapping->binary->references > 0);
		last = mapping->end;
	}
}

void spaces_check(const struct spaces *spaces)
{
	size_t bytes = 0;

	assert(!spaces->pending_count);
	for (size_t i = 0; i < spaces->count; i++) {
		const struct space *space = spaces->items[i];

		assert(space->index == i);
		assert(space->count <= SPACE_MAPPINGS_MAX);
		check_mappings(space);
		bytes += space_bytes(space);
	}
	assert(bytes == spaces->bytes);
}

void spaces_sweep(struct spaces *spaces, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < spaces->count; i++) {
		struct space *space = spaces->items[i];

		if (space->references) {
			space->index = (uint32_t)kept;
			spaces->items[kept++] = space;
		} else {
			spaces->bytes -= space_bytes(space);
			space_free(space, now_ns);
		}
	}
	if (kept == spaces->count)
		return;
	spaces->count = kept;
	idmap_clear(&spaces->map);
	for (size_t i = 0; i < kept; i++)
		idmap_add(&spaces->map, spaces->items[i]->hash, (uint32_t)i);
}
