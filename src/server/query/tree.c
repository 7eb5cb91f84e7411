/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree.h"

#include <stdlib.h>

#include "server/query/compare.h"

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	comparison_free(tree->comparison);
	arena_free(&tree->arena);
	free(tree);
}
