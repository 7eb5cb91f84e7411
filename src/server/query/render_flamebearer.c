/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's flame graph: levels of nodes from the root down. The rules are those of its
 * NewFlameGraph: a node's own value lies left of its children; children too small for max_nodes
 * become one "other"; each node's offset is told from the end of the one before it in its level.
 */
#include "server/query/render.h"

#include <stdlib.h>

#include "base/mem.h"

struct placed { /* a node on its level */
	int64_t offset, total, self;
	uint32_t name;
	uint32_t depth;
};

struct layout {
	const struct tree *tree;
	int64_t smallest; /* nodes with less are summed up */
	struct placed *placed;
	size_t count, capacity;
	uint32_t *name_of_function; /* UINT32_MAX: not used yet */
	struct flamebearer *result;
	size_t names_capacity;
	uint32_t other; /* name of what was summed up; UINT32_MAX: none yet */
};

static int descending(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left < right) - (left > right);
}

/* The total below which nodes are left out, so that about max_nodes stay. */
static int64_t smallest_of(const struct tree *tree, size_t max_nodes)
{
	int64_t *totals, smallest;

	if (!max_nodes || tree->nodes_count <= max_nodes)
		return 0;
	totals = mem_new_array(int64_t, tree->nodes_count);
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		totals[i] = tree->nodes[i].total;
	qsort(totals, tree->nodes_count, sizeof(*totals), descending);
	smallest = totals[max_nodes - 1];
	free(totals);
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

	if (*name == UINT32_MAX)
		*name = add_name(layout, layout->tree->functions[function].name);
	return *name;
}

static void place(struct layout *layout, uint32_t depth, int64_t offset, int64_t total,
		  int64_t self, uint32_t name)
{
	mem_grow(layout->placed, layout->count, layout->capacity);
	layout->placed[layout->count++] = (struct placed){ offset, total, self, name, depth };
	if (self > layout->result->max_self)
		layout->result->max_self = self;
}

/* What was left out below a node, at the right end of its children. */
static void place_other(struct layout *layout, uint32_t depth, int64_t offset, int64_t total)
{
	if (!total)
		return;
	if (layout->other == UINT32_MAX)
		layout->other = add_name(layout, SLICE_LITERAL("other"));
	place(layout, depth, offset, total, total, layout->other);
}

/*
 * Nodes are in pre-order with the largest sibling first, so the small ones of a parent come last
 * and with all that is below them. `next[d]` is where the next child of the node at depth d goes,
 * `left_out[d]` what of its children was left out so far.
 */
static void place_all(struct layout *layout)
{
	const struct tree *tree = layout->tree;
	int64_t *next = mem_new_array(int64_t, (size_t)tree->depth_max + 2);
	int64_t *left_out = mem_new_array(int64_t, (size_t)tree->depth_max + 2);
	uint32_t open = 0; /* depth of the last node placed */

	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		int64_t offset = i ? next[node->depth - 1] : 0;

		if (i && node->depth > open + 1)
			continue; /* below one that was left out */
		for (; i && open >= node->depth; open--) {
			place_other(layout, open + 1, next[open], left_out[open]);
			left_out[open] = 0;
		}
		if (i && node->total < layout->smallest) {
			left_out[node->depth - 1] += node->total;
			continue;
		}
		place(layout, node->depth, offset, node->total, node->self,
		      name_of(layout, node->function));
		if (i)
			next[node->depth - 1] += node->total;
		next[node->depth] = offset + node->self;
		open = node->depth;
	}
	for (uint32_t depth = open + 1; depth-- > 0;)
		place_other(layout, depth + 1, next[depth], left_out[depth]);
	free(next);
	free(left_out);
}

/* From depth-first to level by level: a counting sort that keeps the order from left to right. */
static void make_levels(struct layout *layout)
{
	struct flamebearer *result = layout->result;
	int64_t *ends;

	for (size_t i = 0; i < layout->count; i++)
		if (layout->placed[i].depth + 1 > result->levels_count)
			result->levels_count = layout->placed[i].depth + 1;
	result->levels = mem_new_array(struct flamebearer_level, result->levels_count);
	ends = mem_new_array(int64_t, result->levels_count);
	for (size_t i = 0; i < layout->count; i++)
		result->levels[layout->placed[i].depth].count += FLAMEBEARER_VALUES;
	for (size_t i = 0; i < result->levels_count; i++) {
		result->levels[i].values = mem_new_array(int64_t, result->levels[i].count);
		result->levels[i].count = 0;
	}
	for (size_t i = 0; i < layout->count; i++) {
		const struct placed *placed = &layout->placed[i];
		struct flamebearer_level *level = &result->levels[placed->depth];
		int64_t *values = &level->values[level->count];

		values[0] = placed->offset - ends[placed->depth];
		values[1] = placed->total;
		values[2] = placed->self;
		values[3] = placed->name;
		ends[placed->depth] = placed->offset + placed->total;
		level->count += FLAMEBEARER_VALUES;
	}
	free(ends);
}

void render_flamebearer(const struct tree *tree, size_t max_nodes, struct flamebearer *ret)
{
	struct layout layout = { .tree = tree, .result = ret, .other = UINT32_MAX };

	*ret = (struct flamebearer){ .total = tree->total };
	layout.smallest = smallest_of(tree, max_nodes);
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
