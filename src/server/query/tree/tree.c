/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/tree.h"

#include <stdlib.h>

#include "server/query/tree/comparison.h"
#include "server/query/query.h"

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
