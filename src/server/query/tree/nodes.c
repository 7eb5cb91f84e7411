/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/nodes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/query/work.h"

/* How many of the wanted calls the path to a node begins with; NONE: another path. */
#define NONE UINT32_MAX

static uint32_t matched(const struct tree *tree, uint32_t node, uint32_t parent_matched,
			const struct slice *names, size_t count)
{
	uint32_t depth = tree->nodes[node].depth;

	if (parent_matched == NONE || parent_matched == count)
		return parent_matched;
	if (!slice_equal(tree->functions[tree->nodes[node].function].name, names[depth - 1]))
		return NONE;
	return depth;
}

/* Drops nodes of which nothing is left. */
static void compact(struct tree *tree)
{
	uint32_t *moved = mem_new_array(uint32_t, tree->nodes_count);
	uint32_t kept = 0;

	tree->depth_max = 0;
	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		if (i && !tree->nodes[i].total)
			continue;
		moved[i] = kept;
		tree->nodes[kept] = tree->nodes[i];
		tree->nodes[kept].parent = moved[tree->nodes[i].parent];
		if (tree->nodes[kept].depth > tree->depth_max)
			tree->depth_max = tree->nodes[kept].depth;
		kept++;
	}
	tree->nodes_count = kept;
	free(moved);
}

void tree_keep_calls(struct tree *tree, const struct slice *names, size_t count)
{
	uint32_t *state = mem_new_array(uint32_t, tree->nodes_count);

	assert(tree->nodes_count > 0);
	for (uint32_t i = 1; i < tree->nodes_count; i++)
		state[i] = matched(tree, i, state[tree->nodes[i].parent], names, count);
	for (uint32_t i = tree->nodes_count; i-- > 0;) {
		struct tree_node *node = &tree->nodes[i];

		if (state[i] != count)
			node->self = 0;
		node->total = node->self;
	}
	for (uint32_t i = tree->nodes_count; i-- > 1;) {
		struct tree_node *parent = &tree->nodes[tree->nodes[i].parent];

		parent->total = work_add(parent->total, tree->nodes[i].total);
	}
	free(state);
	compact(tree);
	tree->total = tree->nodes[0].total;
}

static int64_t own_value(const struct tree *tree, uint32_t node)
{
	return tree->nodes[node].self - (tree->base ? tree->base[node].self : 0);
}

static bool make_room(struct tree *tree)
{
	struct arena *arena = &tree->arena;
	size_t depths = 0, nodes = tree->nodes_count;

	for (uint32_t i = 0; i < nodes; i++)
		if (own_value(tree, i))
			depths += tree->nodes[i].depth;
	tree->lines = arena_new_array(arena, struct tree_line, tree->functions_count);
	tree->locations = arena_new_array(arena, struct tree_location, tree->functions_count);
	tree->stacks = arena_new_array(arena, struct tree_stack, nodes);
	tree->stack_locations = arena_new_array(arena, uint32_t, depths);
	tree->stacks_count = tree->stack_locations_count = 0;
	return tree->lines && tree->locations && tree->stacks && tree->stack_locations;
}

/* Location n is function n + 1. */
static void add_stack(struct tree *tree, uint32_t node)
{
	struct tree_stack *stack = &tree->stacks[tree->stacks_count++];

	assert(node < tree->nodes_count);
	*stack = (struct tree_stack){ .location_first = tree->stack_locations_count,
				      .value = own_value(tree, node) };
	for (; node; node = tree->nodes[node].parent)
		tree->stack_locations[tree->stack_locations_count++] =
			tree->nodes[node].function - 1;
	stack->location_count = tree->stack_locations_count - stack->location_first;
}

int tree_stacks_of_nodes(struct tree *tree, struct err *err)
{
	assert(tree->nodes_count > 0);
	if (!make_room(tree))
		return err_set(err, ERR_NO_MEMORY, "query: no room for the stacks");
	for (uint32_t f = 1; f < tree->functions_count; f++) {
		const struct tree_function *function = &tree->functions[f];

		tree->lines[f - 1] = (struct tree_line){ .function = f };
		tree->locations[f - 1] = (struct tree_location){ .line_first = f - 1,
								 .line_count = 1,
								 .mapping = function->mapping,
								 .build_id = function->build_id,
								 .kind = function->kind };
	}
	tree->lines_count = tree->locations_count = tree->functions_count - 1;
	for (uint32_t i = 1; i < tree->nodes_count; i++)
		if (own_value(tree, i))
			add_stack(tree, i);
	return 0;
}
