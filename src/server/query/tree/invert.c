/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/invert.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "server/query/work.h"

struct growing {
	uint32_t parent, function;
	uint32_t inlined;
	int64_t self, total;
	struct tree_base base; /* of a diff */
	struct tree_place place;
	uint32_t first_child, next; /* 0 = none */
};

struct inverting {
	const struct tree *from;
	struct growing *nodes; /* 0 is the root; a parent comes before its children */
	size_t count, capacity;
	size_t count_max; /* that the tree's arena has room for */
	bool is_over;
	struct idmap map;
};

static bool is_same(const void *context, uint32_t id, const void *key)
{
	const struct inverting *inverting = context;
	const struct growing *a = &inverting->nodes[id], *b = key;

	return a->parent == b->parent && a->function == b->function;
}

static uint32_t child_of(struct inverting *inverting, uint32_t parent, const struct tree_node *node)
{
	struct growing wanted = { .parent = parent,
				  .function = node->function,
				  .inlined = node->inlined };
	const struct tree *tree = inverting->from;
	uint64_t hash = hash_mix(hash_mix(0, parent), node->function);
	uint32_t id = idmap_find(&inverting->map, hash, is_same, inverting, &wanted);

	assert(parent < inverting->count);
	assert(inverting->count <= inverting->capacity);
	assert(node->function < inverting->from->functions_count);
	if (id == IDMAP_NONE && inverting->count >= inverting->count_max) {
		inverting->is_over = true; /* what comes of it is thrown away */
		id = 0;
	} else if (id == IDMAP_NONE) {
		id = (uint32_t)inverting->count;
		mem_grow(inverting->nodes, inverting->count, inverting->capacity);
		inverting->nodes[inverting->count++] = wanted;
		idmap_add(&inverting->map, hash, id);
	}
	inverting->nodes[id].inlined &= node->inlined;
	if (tree->places)
		tree_place_add(&inverting->nodes[id].place, &tree->places[node - tree->nodes]);
	return id;
}

static bool is_label(const struct tree *tree, uint32_t node)
{
	return tree->functions[tree->nodes[node].function].is_label;
}

/* The group-by value that a node lies below, or the root. */
static uint32_t group_of(const struct tree *tree, uint32_t node)
{
	while (node && !is_label(tree, node))
		node = tree->nodes[node].parent;
	return node;
}

static void add_to(int64_t *sum, int64_t value)
{
	*sum = work_add(*sum, value);
}

/* From the node up to its group or the root; `base` is of the side that is compared to. */
static void add_path(struct inverting *inverting, uint32_t node, int64_t value, int64_t base)
{
	const struct tree *tree = inverting->from;
	uint32_t group = group_of(tree, node);
	uint32_t at = group ? child_of(inverting, 0, &tree->nodes[group]) : 0;

	assert(node < inverting->from->nodes_count);
	for (; node != group && !inverting->is_over; node = tree->nodes[node].parent)
		at = child_of(inverting, at, &tree->nodes[node]);
	add_to(&inverting->nodes[at].self, value);
	add_to(&inverting->nodes[at].base.self, base);
}

static struct tree_base base_of(const struct tree *tree, uint32_t node)
{
	return tree->base ? tree->base[node] : (struct tree_base){ 0 };
}

static void add_all(struct inverting *inverting)
{
	const struct tree *tree = inverting->from;

	for (uint32_t i = 0; i < tree->nodes_count && !inverting->is_over; i++)
		if (tree->nodes[i].self || base_of(tree, i).self)
			add_path(inverting, i, tree->nodes[i].self, base_of(tree, i).self);
}

/* Nodes are in pre-order: what comes after a call and is deeper was called by it. */
static void add_calls_of(struct inverting *inverting, struct slice function)
{
	const struct tree *tree = inverting->from;
	uint32_t inside = UINT32_MAX; /* depth of the call that we are in */

	for (uint32_t i = 1; i < tree->nodes_count && !inverting->is_over; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->depth > inside)
			continue;
		inside = UINT32_MAX;
		if (!slice_equal(tree->functions[node->function].name, function) ||
		    is_label(tree, i))
			continue;
		inside = node->depth;
		add_path(inverting, i, node->total, base_of(tree, i).total);
	}
}

static void add_up(struct inverting *inverting)
{
	struct growing *nodes = inverting->nodes;

	for (size_t i = inverting->count; i-- > 0;) {
		add_to(&nodes[i].total, nodes[i].self);
		add_to(&nodes[i].base.total, nodes[i].base.self);
		if (!i)
			continue;
		add_to(&nodes[nodes[i].parent].total, nodes[i].total);
		add_to(&nodes[nodes[i].parent].base.total, nodes[i].base.total);
	}
}

struct sibling {
	const struct tree *tree;
	const struct growing *node;
	uint32_t id;
};

static int by_total(const void *a, const void *b)
{
	const struct sibling *left = a, *right = b;
	int64_t one = left->node->total + left->node->base.total;
	int64_t other = right->node->total + right->node->base.total;

	if (one != other)
		return one < other ? 1 : -1;
	return slice_compare(left->tree->functions[left->node->function].name,
			     right->tree->functions[right->node->function].name);
}

/* Sorts the children of a node and links them, the largest first. */
static void link_children(struct inverting *inverting, uint32_t parent, struct sibling *siblings,
			  size_t count)
{
	uint32_t *link = &inverting->nodes[parent].first_child;

	assert(parent < inverting->count);
	assert(siblings || !count);
	qsort(siblings, count, sizeof(*siblings), by_total);
	for (size_t i = 0; i < count; i++) {
		*link = siblings[i].id;
		link = &inverting->nodes[siblings[i].id].next;
	}
}

/* Children by parent: a counting sort, then each family. */
static void link_all(struct inverting *inverting)
{
	size_t count = inverting->count;
	uint32_t *starts = mem_new_array(uint32_t, count + 1);
	struct sibling *siblings = mem_new_array(struct sibling, count);

	for (size_t i = 1; i < count; i++)
		starts[inverting->nodes[i].parent + 1]++;
	for (size_t i = 1; i <= count; i++)
		starts[i] += starts[i - 1];
	for (uint32_t i = 1; i < count; i++)
		siblings[starts[inverting->nodes[i].parent]++] =
			(struct sibling){ inverting->from, &inverting->nodes[i], i };
	for (uint32_t i = 0; i < count; i++) { /* starts[i] is now the end of i's children */
		uint32_t first = i ? starts[i - 1] : 0;

		link_children(inverting, i, &siblings[first], starts[i] - first);
	}
	free(starts);
	free(siblings);
}

/* Pre-order. */
static void lay_out(const struct inverting *inverting, struct tree_node *to, struct tree_base *base,
		    struct tree_place *places, uint32_t *ret_depth)
{
	uint32_t *placed = mem_new_array(uint32_t, inverting->count);
	uint32_t at = 0, count = 0;

	*ret_depth = 0;
	for (;;) {
		const struct growing *node = &inverting->nodes[at];
		uint32_t parent = at ? placed[node->parent] : 0;

		placed[at] = count;
		to[count] = (struct tree_node){ .parent = parent,
						.depth = at ? to[parent].depth + 1 : 0,
						.function = node->function,
						.inlined = node->inlined,
						.self = node->self,
						.total = node->total };
		if (base)
			base[count] = node->base;
		if (places)
			places[count] = node->place;
		if (to[count].depth > *ret_depth)
			*ret_depth = to[count].depth;
		count++;
		if (node->first_child) {
			at = node->first_child;
			continue;
		}
		while (at && !inverting->nodes[at].next)
			at = inverting->nodes[at].parent;
		if (!at)
			break;
		at = inverting->nodes[at].next;
	}
	free(placed);
}

/* Turned around, a tree can have many times as many nodes: nearly one per stack and depth. */
static size_t room_of(const struct arena *arena)
{
	size_t bytes = arena->budget_bytes;

	if (!bytes)
		return UINT32_MAX;
	bytes -= arena->used_bytes < bytes ? arena->used_bytes : bytes;
	bytes /= sizeof(struct tree_node) + sizeof(struct tree_base) + sizeof(struct tree_place);
	return bytes < UINT32_MAX ? bytes : UINT32_MAX;
}

/* False when there is no room for it; the tree is as it was then. */
static bool replace(struct inverting *inverting, struct tree *tree)
{
	struct tree_base *base = NULL;
	struct tree_place *places = NULL;
	struct tree_node *nodes;

	if (inverting->is_over)
		return false;
	add_up(inverting);
	link_all(inverting);
	nodes = arena_new_array(&tree->arena, struct tree_node, inverting->count);
	if (tree->base)
		base = arena_new_array(&tree->arena, struct tree_base, inverting->count);
	if (tree->places)
		places = arena_new_array(&tree->arena, struct tree_place, inverting->count);
	if (!nodes || (tree->base && !base) || (tree->places && !places))
		return false;
	lay_out(inverting, nodes, base, places, &tree->depth_max);
	tree->nodes = nodes;
	tree->base = base;
	tree->places = places;
	tree->base_total = base ? base[0].total : 0;
	tree->nodes_count = (uint32_t)inverting->count;
	tree->total = nodes[0].total;
	return true;
}

int tree_invert(struct tree *tree, struct slice function, struct err *err)
{
	struct inverting inverting = { .from = tree, .count_max = room_of(&tree->arena) };
	bool fits;

	assert(tree->nodes_count > 0);
	mem_grow(inverting.nodes, inverting.count, inverting.capacity);
	inverting.nodes[inverting.count++] =
		(struct growing){ .function = tree->nodes[0].function };
	if (function.len)
		add_calls_of(&inverting, function);
	else
		add_all(&inverting);
	fits = replace(&inverting, tree);
	idmap_free(&inverting.map);
	free(inverting.nodes);
	return fits ? 0 : err_set(err, ERR_NO_MEMORY, "query: no room to turn the tree around");
}
