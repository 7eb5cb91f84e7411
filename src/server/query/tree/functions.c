/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/functions.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "server/query/work.h"

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(((const struct functions *)context)->rows[id].name,
			   *(const struct slice *)key);
}

static void make_rows(struct functions *functions, const struct tree *tree)
{
	struct idmap map = { 0 };

	assert(tree->functions || !tree->functions_count);
	functions->rows = mem_new_array(struct functions_row, tree->functions_count);
	functions->row_of = mem_new_array(uint32_t, tree->functions_count);
	for (uint32_t i = 0; i < tree->functions_count; i++) {
		struct slice name = tree->functions[i].name;
		uint64_t hash = hash_bytes(name.data, name.len);
		uint32_t row;

		functions->row_of[i] = FUNCTIONS_NO_ROW;
		if (i == 0 || tree->functions[i].is_label)
			continue;
		row = idmap_find(&map, hash, row_equal, functions, &name);
		if (row == IDMAP_NONE) {
			row = functions->rows_count++;
			functions->rows[row].name = name;
			idmap_add(&map, hash, row);
		}
		functions->row_of[i] = row;
	}
	idmap_free(&map);
}

static void add(struct functions_value *value, int64_t self, int64_t total, bool outermost)
{
	value->flat = work_add(value->flat, self);
	if (outermost)
		value->cum = work_add(value->cum, total);
}

/* `path` holds the rows from the root; `open` how often each is on it. */
static void sum(struct functions *functions, const struct tree *tree, uint32_t *path,
		uint32_t *open)
{
	uint32_t depth = 0; /* of what is on the path, the root not counted */

	assert(functions->row_of || !tree->functions_count);
	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint32_t row = functions->row_of[node->function];

		for (; depth >= node->depth; depth--)
			if (path[depth] != FUNCTIONS_NO_ROW)
				open[path[depth]]--;
		path[++depth] = row;
		if (row == FUNCTIONS_NO_ROW)
			continue;
		add(&functions->rows[row].value, node->self, node->total, !open[row]);
		if (tree->base)
			add(&functions->rows[row].base, tree->base[i].self, tree->base[i].total,
			    !open[row]);
		open[row]++;
	}
}

void functions_make(struct functions *functions, const struct tree *tree)
{
	uint32_t *path = mem_new_array(uint32_t, (size_t)tree->depth_max + 2);
	uint32_t *open = mem_new_array(uint32_t, (size_t)tree->functions_count + 1);

	assert(tree->nodes || !tree->nodes_count);
	*functions = (struct functions){ 0 };
	make_rows(functions, tree);
	sum(functions, tree, path, open);
	free(path);
	free(open);
}

void functions_free(struct functions *functions)
{
	free(functions->rows);
	free(functions->row_of);
	*functions = (struct functions){ 0 };
}
