/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/tree.h"

#include <assert.h>
#include <stdlib.h>

#include "server/query/tree/comparison.h"
#include "server/query/query.h"

void tree_check(const struct tree *tree)
{
	assert(tree->nodes_count > 0 && tree->nodes[0].depth == 0);
	assert(tree->functions && tree->functions_count > 0);
	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		assert(node->parent < i);
		assert(node->depth == tree->nodes[node->parent].depth + 1);
		assert(node->depth <= tree->depth_max);
		assert(node->function < tree->functions_count);
	}
}

void tree_place_add(struct tree_place *place, const struct tree_place *other)
{
	if (!other->is_known)
		return;
	if (!place->is_known) {
		*place = *other;
		return;
	}
	place->several_addresses |= other->several_addresses || other->address != place->address;
	place->several_lines |= other->several_lines || other->line != place->line;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	if (tree->pool)
		atomic_fetch_sub(&tree->pool->used_bytes, tree->pooled_bytes);
	comparison_free(tree->comparison);
	comparison_free(tree->intervals);
	arena_free(&tree->arena);
	free(tree);
}
