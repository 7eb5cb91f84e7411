/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree.h"

#include <stdlib.h>

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	arena_free(&tree->arena);
	free(tree);
}
