/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's flame graph: levels of nodes from the root down. The rules are those of its
 * NewFlameGraph: a node's own value lies left of its children; children too small for max_nodes
 * become one "other"; each node's offset is told from the end of the one before it in its level.
 */
#include "server/query/render/render.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

#define SIDES_MAX 2

struct extent {
	int64_t offset, total, self;
};

/* A node on its level. In a diff the base comes first, and is told beside the other side. */
struct placed {
	struct extent sides[SIDES_MAX];
	uint32_t name;
	uint32_t depth;
};

struct layout {
	const struct tree *tree;
	int sides;
	int64_t smallest; /* nodes with less are summed up */
	struct placed *placed;
	size_t count, capacity;
	uint32_t *name_of_function; /* UINT32_MAX: not used yet */
	struct flamebearer *result;
	size_t names_capacity;
	uint32_t other; /* name of what was summed up; UINT32_MAX: none yet */
};

static struct extent extent_of(const struct layout *layout, uint32_t node, int side)
{
	const struct tree *tree = layout->tree;

	if (side < layout->sides - 1)
		return (struct extent){ 0, tree->base[node].total, tree->base[node].self };
	return (struct extent){ 0, tree->nodes[node].total, tree->nodes[node].self };
}

/* The sum of both sides. */
static int64_t size_of(const struct layout *layout, uint32_t node)
{
	int64_t size = 0;

	assert(node < layout->tree->nodes_count);
	for (int side = 0; side < layout->sides; side++)
		size += extent_of(layout, node, side).total;
	return size;
}

static int descending(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left < right) - (left > right);
}

/* The size below which nodes are left out, so that about max_nodes stay. */
static int64_t smallest_of(const struct layout *layout, size_t max_nodes)
{
	uint32_t count = layout->tree->nodes_count;
	int64_t *sizes, smallest;

	if (!max_nodes || count <= max_nodes)
		return 0;
	sizes = mem_new_array(int64_t, count);
	for (uint32_t i = 0; i < count; i++)
		sizes[i] = size_of(layout, i);
	qsort(sizes, count, sizeof(*sizes), descending);
	smallest = sizes[max_nodes - 1];
	free(sizes);
	return smallest;
}

static uint32_t add_name(struct layout *layout, struct slice name)
{
	struct flamebearer *result = layout->result;

	mem_grow(result->names, result->names_count, layout->names_capacity);
	result->names[result->names_count] = name;
	return (uint32_t)result->names_count++;
}

static uint32_t name_of(struct layout *layout, uint32_t function)
{
	uint32_t *name = &layout->name_of_function[function];

	assert(function < layout->tree->functions_count);
	if (*name == UINT32_MAX)
		*name = add_name(layout, layout->tree->functions[function].name);
	return *name;
}

static void place(struct layout *layout, uint32_t depth, const struct extent *sides, uint32_t name)
{
	struct placed *placed;

	assert(layout->count <= layout->capacity);
	mem_grow(layout->placed, layout->count, layout->capacity);
	placed = &layout->placed[layout->count++];
	*placed = (struct placed){ .name = name, .depth = depth };
	for (int side = 0; side < layout->sides; side++) {
		placed->sides[side] = sides[side];
		if (sides[side].self > layout->result->max_self)
			layout->result->max_self = sides[side].self;
	}
}

/* On the path to the last node placed, by depth. */
struct level_state {
	int64_t next[SIDES_MAX];     /* where the next child goes */
	int64_t left_out[SIDES_MAX]; /* of its children, so far */
};

/* What was left out below a node, at the right end of its children. */
static void place_other(struct layout *layout, uint32_t depth, struct level_state *parent)
{
	struct extent sides[SIDES_MAX];
	bool any = false;

	for (int side = 0; side < layout->sides; side++) {
		int64_t total = parent->left_out[side];

		sides[side] = (struct extent){ parent->next[side], total, total };
		any |= total != 0;
		parent->left_out[side] = 0;
	}
	if (!any)
		return;
	if (layout->other == UINT32_MAX)
		layout->other = add_name(layout, SLICE_LITERAL("other"));
	place(layout, depth, sides, layout->other);
}

static void place_node(struct layout *layout, uint32_t node, struct level_state *states)
{
	const struct tree_node *from = &layout->tree->nodes[node];
	struct level_state *own = &states[from->depth];
	struct extent sides[SIDES_MAX];

	assert(node < layout->tree->nodes_count);
	for (int side = 0; side < layout->sides; side++) {
		sides[side] = extent_of(layout, node, side);
		if (node) {
			sides[side].offset = states[from->depth - 1].next[side];
			states[from->depth - 1].next[side] += sides[side].total;
		}
		own->next[side] = sides[side].offset + sides[side].self;
	}
	place(layout, from->depth, sides, name_of(layout, from->function));
}

/*
 * Nodes are in pre-order with the largest sibling first, so the small ones of a parent come last
 * and with all that is below them.
 */
static void place_all(struct layout *layout)
{
	const struct tree *tree = layout->tree;
	struct level_state *states = mem_new_array(struct level_state, (size_t)tree->depth_max + 2);
	uint32_t open = 0; /* depth of the last node placed */

	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (i && node->depth > open + 1)
			continue; /* below one that was left out */
		for (; i && open >= node->depth; open--)
			place_other(layout, open + 1, &states[open]);
		if (i && size_of(layout, i) < layout->smallest) {
			for (int side = 0; side < layout->sides; side++)
				states[node->depth - 1].left_out[side] +=
					extent_of(layout, i, side).total;
			continue;
		}
		place_node(layout, i, states);
		open = node->depth;
	}
	for (uint32_t depth = open + 1; depth-- > 0;)
		place_other(layout, depth + 1, &states[depth]);
	free(states);
}

/* From depth-first to level by level: a counting sort that keeps the order from left to right. */
static void make_levels(struct layout *layout)
{
	struct flamebearer *result = layout->result;
	size_t width = layout->sides == 1 ? FLAMEBEARER_VALUES : FLAMEBEARER_DIFF_VALUES;
	struct extent *ends; /* by level and side; offset is the end */

	for (size_t i = 0; i < layout->count; i++)
		if (layout->placed[i].depth + 1 > result->levels_count)
			result->levels_count = layout->placed[i].depth + 1;
	result->levels = mem_new_array(struct flamebearer_level, result->levels_count);
	ends = mem_new_array(struct extent, result->levels_count * SIDES_MAX);
	for (size_t i = 0; i < layout->count; i++)
		result->levels[layout->placed[i].depth].count += width;
	for (size_t i = 0; i < result->levels_count; i++) {
		result->levels[i].values = mem_new_array(int64_t, result->levels[i].count);
		result->levels[i].count = 0;
	}
	for (size_t i = 0; i < layout->count; i++) {
		const struct placed *placed = &layout->placed[i];
		struct flamebearer_level *level = &result->levels[placed->depth];

		for (int side = 0; side < layout->sides; side++) {
			struct extent *end =
				&ends[(size_t)placed->depth * SIDES_MAX + (size_t)side];
			const struct extent *at = &placed->sides[side];

			level->values[level->count++] = at->offset - end->offset;
			level->values[level->count++] = at->total;
			level->values[level->count++] = at->self;
			end->offset = at->offset + at->total;
		}
		level->values[level->count++] = placed->name;
	}
	free(ends);
}

void render_flamebearer(const struct tree *tree, size_t max_nodes, struct flamebearer *ret)
{
	struct layout layout = {
		.tree = tree, .sides = tree->base ? 2 : 1, .result = ret, .other = UINT32_MAX
	};

	assert(tree->nodes_count > 0);
	*ret = (struct flamebearer){ .total = tree->total };
	if (tree->base) {
		ret->left = tree->base_total;
		ret->right = tree->total;
		ret->total += tree->base_total;
	}
	layout.smallest = smallest_of(&layout, max_nodes);
	layout.name_of_function = mem_new_array(uint32_t, tree->functions_count);
	memset(layout.name_of_function, 0xff,
	       tree->functions_count * sizeof(*layout.name_of_function));
	place_all(&layout);
	make_levels(&layout);
	free(layout.placed);
	free(layout.name_of_function);
}

void flamebearer_free(struct flamebearer *flamebearer)
{
	for (size_t i = 0; i < flamebearer->levels_count; i++)
		free(flamebearer->levels[i].values);
	free(flamebearer->levels);
	free(flamebearer->names);
	*flamebearer = (struct flamebearer){ 0 };
}
