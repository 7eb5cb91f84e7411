/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/lines.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "server/query/work.h"

#define NONE UINT32_MAX
#define STEPS_BETWEEN_LOOKS ((size_t)1 << 16)

/* What a value belongs to, by its number. */
struct line_place {
	uint32_t place;
	uint64_t at;
	int64_t self, total;
	uint32_t seen; /* the last stack that was counted for it, + 1 */
};

struct place {
	struct slice file, mapping, build_id;
	bool by_offset;
	int64_t self, total;
	uint32_t seen;
	size_t line_places_count;
};

struct lining {
	const struct tree *tree;
	const struct lines_wanted *wanted;
	struct place *places;
	size_t places_count, places_capacity;
	struct line_place *line_places;
	size_t line_places_count, line_places_capacity;
	struct idmap place_map, line_place_map;
	uint32_t *line_place_of; /* by line of the tree, or by location */
	uint8_t *functions;	 /* by function: some line of it is wanted */
	const struct query_limits *limits;
	size_t steps; /* since these were looked at */
};

/* Counts small steps; negative once the time is over. */
static int step(struct lining *lining, size_t steps, struct err *err)
{
	lining->steps += steps;
	if (lining->steps < STEPS_BETWEEN_LOOKS)
		return 0;
	lining->steps = 0;
	return query_limits_check(lining->limits, err);
}

static bool same_place(const void *context, uint32_t id, const void *key)
{
	const struct place *a = &((const struct lining *)context)->places[id], *b = key;

	return slice_equal(a->file, b->file) && slice_equal(a->mapping, b->mapping) &&
	       slice_equal(a->build_id, b->build_id) && a->by_offset == b->by_offset;
}

static uint32_t place_of(struct lining *lining, const struct place *wanted)
{
	uint64_t hash = hash_bytes(wanted->file.data, wanted->file.len);
	uint32_t id;

	assert(lining->places_count <= lining->places_capacity);
	hash = hash_mix(hash, hash_bytes(wanted->mapping.data, wanted->mapping.len));
	hash = hash_mix(hash, hash_bytes(wanted->build_id.data, wanted->build_id.len));
	id = idmap_find(&lining->place_map, hash, same_place, lining, wanted);
	if (id != IDMAP_NONE)
		return id;
	id = (uint32_t)lining->places_count;
	mem_grow(lining->places, lining->places_count, lining->places_capacity);
	lining->places[lining->places_count++] = *wanted;
	idmap_add(&lining->place_map, hash, id);
	return id;
}

static bool same_line_place(const void *context, uint32_t id, const void *key)
{
	const struct line_place *a = &((const struct lining *)context)->line_places[id], *b = key;

	return a->place == b->place && a->at == b->at;
}

static uint32_t number_line_place(struct lining *lining, const struct place *place, uint64_t at)
{
	struct line_place wanted = { .place = place_of(lining, place), .at = at };
	uint64_t hash = hash_mix(hash_mix(0, wanted.place), at);
	uint32_t id = idmap_find(&lining->line_place_map, hash, same_line_place, lining, &wanted);

	assert(lining->line_places_count <= lining->line_places_capacity);
	if (id != IDMAP_NONE)
		return id;
	id = (uint32_t)lining->line_places_count;
	mem_grow(lining->line_places, lining->line_places_count, lining->line_places_capacity);
	lining->line_places[lining->line_places_count++] = wanted;
	lining->places[wanted.place].line_places_count++;
	idmap_add(&lining->line_place_map, hash, id);
	return id;
}

static bool is_file(const struct lines_wanted *wanted, struct slice file)
{
	struct slice end = wanted->file;

	if (!end.len || slice_equal(file, end))
		return true;
	return slice_ends_in_path(file, end);
}

static bool is_function(const struct lining *lining, const struct tree_line *line)
{
	const struct tree_function *function = &lining->tree->functions[line->function];

	return !lining->wanted->function.len ||
	       slice_equal(function->name, lining->wanted->function);
}

static bool is_build(const struct lines_wanted *wanted, const struct tree_location *location)
{
	return !wanted->build_id.len || slice_equal(location->build_id, wanted->build_id);
}

/* Finds the line_place of each line of a location. */
static void find_lines(struct lining *lining, const struct tree_location *location)
{
	const struct tree *tree = lining->tree;

	assert(location->line_first + location->line_count <= lining->tree->lines_count);
	for (uint32_t i = 0; i < location->line_count; i++) {
		const struct tree_line *line = &tree->lines[location->line_first + i];
		const struct tree_function *function = &tree->functions[line->function];
		const struct place place = { .file = function->file,
					     .mapping = location->mapping,
					     .build_id = location->build_id };

		lining->line_place_of[location->line_first + i] = NONE;
		if (!function->file.len || !is_function(lining, line) ||
		    !is_file(lining->wanted, function->file) || !is_build(lining->wanted, location))
			continue;
		lining->functions[line->function] = 1;
		lining->line_place_of[location->line_first + i] =
			number_line_place(lining, &place, line->line);
	}
}

/* The line_place of a location's address, when one of its functions is wanted. */
static void find_address(struct lining *lining, uint32_t number)
{
	const struct tree *tree = lining->tree;
	const struct tree_location *location = &tree->locations[number];
	const struct place place = { .mapping = location->mapping,
				     .build_id = location->build_id,
				     .by_offset = location->address_is_offset };
	bool wanted = false;

	assert(number < lining->tree->locations_count);
	lining->line_place_of[number] = NONE;
	for (uint32_t i = 0; i < location->line_count; i++) {
		const struct tree_line *line = &tree->lines[location->line_first + i];

		if (!is_function(lining, line))
			continue;
		lining->functions[line->function] = 1;
		wanted = true;
	}
	if (wanted && location->build_id.len && is_build(lining->wanted, location))
		lining->line_place_of[number] =
			number_line_place(lining, &place, location->address);
}

static int find_line_places(struct lining *lining, struct err *err)
{
	const struct tree *tree = lining->tree;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < tree->locations_count; i++) {
		if (lining->wanted->by_address)
			find_address(lining, i);
		else
			find_lines(lining, &tree->locations[i]);
		rc = step(lining, 1 + (size_t)tree->locations[i].line_count, err);
	}
	return rc;
}

static void count(struct lining *lining, uint32_t number, uint32_t stack, bool is_leaf,
		  int64_t value)
{
	struct line_place *line_place;
	struct place *place;

	if (number == NONE)
		return;
	assert(number < lining->line_places_count);
	line_place = &lining->line_places[number];
	place = &lining->places[line_place->place];
	if (is_leaf) {
		line_place->self = work_add(line_place->self, value);
		place->self = work_add(place->self, value);
	}
	if (line_place->seen != stack + 1)
		line_place->total = work_add(line_place->total, value);
	if (place->seen != stack + 1)
		place->total = work_add(place->total, value);
	line_place->seen = place->seen = stack + 1;
}

static void count_stack(struct lining *lining, uint32_t number)
{
	const struct tree *tree = lining->tree;
	const struct tree_stack *stack = &tree->stacks[number];
	bool is_leaf = true;

	assert(number < lining->tree->stacks_count);
	for (uint32_t i = 0; i < stack->location_count; i++) {
		uint32_t at = tree->stack_locations[stack->location_first + i];
		const struct tree_location *location = &tree->locations[at];

		if (lining->wanted->by_address) {
			count(lining, lining->line_place_of[at], number, is_leaf, stack->value);
			is_leaf = false;
			continue;
		}
		for (uint32_t l = 0; l < location->line_count; l++) {
			count(lining, lining->line_place_of[location->line_first + l], number,
			      is_leaf, stack->value);
			is_leaf = false;
		}
	}
}

static int by_at(const void *a, const void *b)
{
	const struct lines_value *left = a, *right = b;

	return (left->at > right->at) - (left->at < right->at);
}

static int by_total(const void *a, const void *b)
{
	const struct lines_place *left = a, *right = b;
	int order;

	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	order = slice_compare(left->file, right->file);
	return order ? order : slice_compare(left->build_id, right->build_id);
}

static int too_much(const struct lines *lines, struct err *err)
{
	return err_set(err, ERR_NO_MEMORY, "lines: more than %zu MiB; narrow the selection",
		       lines->arena.budget_bytes >> 20);
}

/* The functions whose lines lie in the place. */
static int add_functions(struct lining *lining, struct lines *lines, struct err *err)
{
	const struct tree *tree = lining->tree;
	uint32_t *wanted = arena_new_array(&lines->arena, uint32_t, tree->functions_count);
	uint32_t *last = arena_new_array(&lines->arena, uint32_t, tree->functions_count);
	size_t count = 0;
	int rc = 0;

	if (!wanted || !last)
		return too_much(lines, err);
	for (uint32_t f = 0; f < tree->functions_count; f++)
		if (lining->functions[f])
			wanted[count++] = f; /* few, of many */
	for (size_t p = 0; !rc && p < lines->places_count; p++) {
		struct lines_place *place = &lines->places[p];
		size_t found = 0;

		for (size_t i = 0; i < count; i++)
			if (lining->wanted->by_address ||
			    slice_equal(tree->functions[wanted[i]].file, place->file))
				last[found++] = wanted[i];
		place->functions = arena_new_array(&lines->arena, uint32_t, found);
		if (!place->functions)
			return too_much(lines, err);
		memcpy(place->functions, last, found * sizeof(*last));
		place->functions_count = found;
		rc = step(lining, count, err);
	}
	return rc;
}

static int put_together(struct lining *lining, struct lines *lines, struct err *err)
{
	lines->places = arena_new_array(&lines->arena, struct lines_place, lining->places_count);
	if (!lines->places)
		return too_much(lines, err);
	for (size_t p = 0; p < lining->places_count; p++) {
		const struct place *from = &lining->places[p];

		lines->places[p] = (struct lines_place){
			.file = from->file,
			.mapping = from->mapping,
			.build_id = from->build_id,
			.by_offset = from->by_offset,
			.self = from->self,
			.total = from->total,
			.values = arena_new_array(&lines->arena, struct lines_value,
						  from->line_places_count),
		};
		if (!lines->places[p].values)
			return too_much(lines, err);
	}
	lines->places_count = lining->places_count;
	for (size_t i = 0; i < lining->line_places_count; i++) {
		const struct line_place *line_place = &lining->line_places[i];
		struct lines_place *place = &lines->places[line_place->place];

		place->values[place->values_count++] =
			(struct lines_value){ line_place->at, line_place->self, line_place->total };
	}
	for (size_t p = 0; p < lines->places_count; p++)
		qsort(lines->places[p].values, lines->places[p].values_count,
		      sizeof(struct lines_value), by_at);
	qsort(lines->places, lines->places_count, sizeof(*lines->places), by_total);
	return add_functions(lining, lines, err);
}

int lines_make(const struct tree *tree, const struct lines_wanted *wanted, size_t memory_bytes,
	       const struct query_limits *limits, struct lines *ret, struct err *err)
{
	struct lining lining = { .tree = tree, .wanted = wanted, .limits = limits };
	size_t line_places = wanted->by_address ? tree->locations_count : tree->lines_count;
	int rc;

	*ret = (struct lines){ 0 };
	arena_init(&ret->arena, memory_bytes);
	lining.line_place_of = mem_new_array(uint32_t, line_places + 1);
	lining.functions = mem_new_array(uint8_t, (size_t)tree->functions_count + 1);
	rc = find_line_places(&lining, err);
	for (uint32_t i = 0; !rc && i < tree->stacks_count; i++) {
		count_stack(&lining, i);
		rc = step(&lining, tree->stacks[i].location_count, err);
	}
	if (!rc)
		rc = put_together(&lining, ret, err);
	free(lining.line_place_of);
	free(lining.functions);
	free(lining.places);
	free(lining.line_places);
	idmap_free(&lining.place_map);
	idmap_free(&lining.line_place_map);
	if (rc)
		lines_free(ret);
	return rc;
}

void lines_free(struct lines *lines)
{
	arena_free(&lines->arena);
	*lines = (struct lines){ 0 };
}
