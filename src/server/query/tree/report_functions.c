/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/report_functions.h"

#include "server/query/work.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

static bool is_same(const void *context, uint32_t id, const void *key)
{
	const struct report_functions *functions = context;
	const struct report_edge *a = &functions->edges[id], *b = key;

	return a->caller == b->caller && a->callee == b->callee;
}

static uint32_t edge_of(struct report_functions *functions, uint32_t caller, uint32_t callee)
{
	const struct report_edge wanted = { .caller = caller, .callee = callee };
	uint64_t hash = hash_mix(hash_mix(0, caller), callee);
	uint32_t id = idmap_find(&functions->map, hash, is_same, functions, &wanted);

	assert(functions->edges_count <= functions->edges_capacity);
	if (id == IDMAP_NONE) {
		id = (uint32_t)functions->edges_count;
		mem_grow(functions->edges, functions->edges_count, functions->edges_capacity);
		functions->edges[functions->edges_count++] = wanted;
		idmap_add(&functions->map, hash, id);
	}
	return id;
}

static void add_to(int64_t *sum, int64_t value)
{
	*sum = work_add(*sum, value);
}

/* A node on the path, and the edge that led to it; IDMAP_NONE: none did. */
struct step {
	uint32_t function, edge;
};

static void leave(struct report_functions *functions, const struct step *step, uint32_t *open)
{
	open[step->function]--;
	if (step->edge != IDMAP_NONE)
		functions->edges[step->edge].open--;
}

static uint32_t take_edge(struct report_functions *functions, uint32_t caller, uint32_t callee,
			  int64_t value)
{
	uint32_t id = edge_of(functions, caller, callee);
	struct report_edge *edge = &functions->edges[id];

	if (!edge->open++)
		add_to(&edge->value, value);
	return id;
}

/* `path` holds what lies between the root and a node; `open` how often each function is on it. */
static void walk(const struct tree *tree, struct report_functions *functions, struct step *path,
		 uint32_t *open)
{
	uint32_t depth = 0; /* of what is on the path, the root not counted */

	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint32_t caller, edge = IDMAP_NONE;

		while (depth >= node->depth)
			leave(functions, &path[depth--], open);
		caller = tree->nodes[node->parent].function;
		if (!open[node->function])
			add_to(&functions->cumulative[node->function], node->total);
		add_to(&functions->flat[node->function], node->self);
		if (tree->base) {
			add_to(&functions->base_flat[node->function], tree->base[i].self);
			if (!open[node->function])
				add_to(&functions->base_cumulative[node->function],
				       tree->base[i].total);
		}
		if (node->parent && !tree->functions[caller].is_label)
			edge = take_edge(functions, caller, node->function, node->total);
		path[++depth] = (struct step){ node->function, edge };
		open[node->function]++;
	}
}

static int by_flat(const void *a, const void *b, void *context)
{
	const struct report_functions *functions = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (functions->flat[left] != functions->flat[right])
		return functions->flat[left] < functions->flat[right] ? 1 : -1;
	if (functions->cumulative[left] != functions->cumulative[right])
		return functions->cumulative[left] < functions->cumulative[right] ? 1 : -1;
	return (left > right) - (left < right);
}

static bool occurs(const struct report_functions *functions, uint32_t id)
{
	return functions->flat[id] || functions->cumulative[id] ||
	       (functions->base_flat &&
		(functions->base_flat[id] || functions->base_cumulative[id]));
}

void report_functions_make(const struct tree *tree, struct report_functions *ret)
{
	struct step *path = mem_new_array(struct step, (size_t)tree->depth_max + 2);
	uint32_t *open = mem_new_array(uint32_t, tree->functions_count);

	assert(tree->nodes_count > 0);
	*ret = (struct report_functions){ 0 };
	ret->flat = mem_new_array(int64_t, tree->functions_count);
	ret->cumulative = mem_new_array(int64_t, tree->functions_count);
	if (tree->base) {
		ret->base_flat = mem_new_array(int64_t, tree->functions_count);
		ret->base_cumulative = mem_new_array(int64_t, tree->functions_count);
	}
	ret->order = mem_new_array(uint32_t, tree->functions_count);
	walk(tree, ret, path, open);
	for (uint32_t f = 1; f < tree->functions_count; f++)
		if (!tree->functions[f].is_label && occurs(ret, f))
			ret->order[ret->count++] = f;
	qsort_r(ret->order, ret->count, sizeof(*ret->order), by_flat, ret);
	free(path);
	free(open);
}

static int by_cumulative(const void *a, const void *b, void *context)
{
	const struct report_functions *functions = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (functions->cumulative[left] != functions->cumulative[right])
		return functions->cumulative[left] < functions->cumulative[right] ? 1 : -1;
	return (left > right) - (left < right);
}

void report_functions_by_cumulative(struct report_functions *functions)
{
	qsort_r(functions->order, functions->count, sizeof(*functions->order), by_cumulative,
		functions);
}

void report_functions_free(struct report_functions *functions)
{
	free(functions->flat);
	free(functions->cumulative);
	free(functions->base_flat);
	free(functions->base_cumulative);
	free(functions->order);
	free(functions->edges);
	idmap_free(&functions->map);
	*functions = (struct report_functions){ 0 };
}
