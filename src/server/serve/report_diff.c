/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/report_diff.h"

#include <math.h>

#include "server/query/render.h"

static int64_t scaled(int64_t value, double factor)
{
	double product = round((double)value * factor);

	if (product >= (double)INT64_MAX)
		return INT64_MAX;
	return product <= (double)INT64_MIN ? INT64_MIN : (int64_t)product;
}

void report_scale(struct tree *tree)
{
	double ours = (double)tree->total, base = (double)tree->base_total;

	if (ours <= 0 || base <= 0)
		return;
	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		struct tree_base *of = &tree->base[i];

		if (base < ours) {
			of->self = scaled(of->self, ours / base);
			of->total = scaled(of->total, ours / base);
		} else {
			of->self += node->self - scaled(node->self, base / ours);
			of->total += node->total - scaled(node->total, base / ours);
		}
	}
}

static bool make_room(struct tree *tree)
{
	struct arena *arena = &tree->arena;
	size_t depths = 0, nodes = tree->nodes_count;

	for (uint32_t i = 0; i < nodes; i++)
		if (tree->nodes[i].self != tree->base[i].self)
			depths += tree->nodes[i].depth;
	tree->lines = arena_new_array(arena, struct tree_line, tree->functions_count);
	tree->locations = arena_new_array(arena, struct tree_location, tree->functions_count);
	tree->stacks = arena_new_array(arena, struct tree_stack, nodes);
	tree->stack_locations = arena_new_array(arena, uint32_t, depths);
	return tree->lines && tree->locations && tree->stacks && tree->stack_locations;
}

static void add_stack(struct tree *tree, uint32_t node)
{
	struct tree_stack *stack = &tree->stacks[tree->stacks_count++];

	*stack = (struct tree_stack){ .location_first = tree->stack_locations_count,
				      .value = tree->nodes[node].self - tree->base[node].self };
	for (; node; node = tree->nodes[node].parent)
		tree->stack_locations[tree->stack_locations_count++] =
			tree->nodes[node].function - 1;
	stack->location_count = tree->stack_locations_count - stack->location_first;
}

void report_diff_pprof(struct tree *tree, struct strbuf *out)
{
	bool fits = make_room(tree);

	for (uint32_t f = 1; fits && f < tree->functions_count; f++) {
		const struct tree_function *function = &tree->functions[f];

		tree->lines[f - 1] = (struct tree_line){ .function = f };
		tree->locations[f - 1] = (struct tree_location){ .line_first = f - 1,
								 .line_count = 1,
								 .mapping = function->mapping,
								 .build_id = function->build_id,
								 .kind = function->kind };
	}
	if (fits) {
		tree->lines_count = tree->locations_count = tree->functions_count - 1;
		for (uint32_t i = 1; i < tree->nodes_count; i++)
			if (tree->nodes[i].self != tree->base[i].self)
				add_stack(tree, i);
	}
	render_pprof(tree, out);
}
