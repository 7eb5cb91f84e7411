/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/tree.h"

#include <stdlib.h>

#include "server/query/tree/comparison.h"
#include "server/query/query.h"

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
