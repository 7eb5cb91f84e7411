/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/collapse.h"

#include <stdlib.h>

#include "base/hash.h"

/* A node while the tree grows: in order of appearance, so a parent comes before its children. */
struct growing {
	uint32_t parent;
	uint32_t function;
	int64_t self;
	int64_t total;
	uint32_t inlined;
	uint32_t child; /* the one that was met last; 0 = none */
	uint32_t next;	/* sibling, in a ring */
};

struct collapsing {
	struct work *work;
	const struct merge *merge;
	struct name_table *names;
	struct sieve *sieve;
	int64_t filtered;
	struct growing *nodes; /* 0 is the root */
	size_t nodes_count, nodes_capacity;
	struct idmap map;
	uint32_t *landed;    /* by stack: the node that it ends in, when it is ... */
	uint32_t *landed_in; /* ... this group + 1 */
	uint32_t *trail;
	size_t trail_capacity;
};

static bool node_equal(const void *context, uint32_t id, const void *key)
{
	const struct collapsing *c = context;
	const struct growing *a = &c->nodes[id], *b = key;

	return a->parent == b->parent && a->function == b->function;
}

static uint32_t new_child(struct collapsing *c, uint32_t parent, uint32_t function, bool inlined)
{
	uint32_t last = c->nodes[parent].child, id = (uint32_t)c->nodes_count;

	if (c->nodes_count == UINT32_MAX - 1 ||
	    !WORK_GROW(&c->work->arena, c->nodes, c->nodes_count, c->nodes_capacity))
		return IDMAP_NONE;
	c->nodes_count++;
	c->nodes[id] = (struct growing){
		.parent = parent, .function = function, .inlined = inlined, .next = id
	};
	if (last) {
		c->nodes[id].next = c->nodes[last].next;
		c->nodes[last].next = id;
	}
	return id;
}

/* The child of a node: the one that was met last, its sibling, or wherever it is. */
static uint32_t child_of(struct collapsing *c, uint32_t parent, uint32_t function, bool inlined)
{
	struct growing wanted = { .parent = parent, .function = function };
	uint32_t id = c->nodes[parent].child;
	uint64_t hash;

	if (id && c->nodes[id].function != function)
		id = c->nodes[id].next;
	if (!id || c->nodes[id].function != function) {
		hash = hash_mix(hash_mix(0, parent), function);
		id = idmap_find(&c->map, hash, node_equal, c, &wanted);
		if (id == IDMAP_NONE) {
			id = new_child(c, parent, function, inlined);
			if (id == IDMAP_NONE)
				return id;
			idmap_add(&c->map, hash, id);
		}
	}
	c->nodes[id].inlined &= inlined;
	return c->nodes[parent].child = id;
}

/* One frame further from the root: the outermost function of its chain first. */
static uint32_t descend(struct collapsing *c, uint32_t node, uint32_t stack)
{
	const struct node *at = &c->merge->view.nodes[stack];
	const struct name_chain *chain = name_frame(c->names, at->frame);
	uint64_t path = 0;

	if (!chain || (!sieve_is_idle(c->sieve) && !sieve_stack(c->sieve, at->parent, &path)))
		return IDMAP_NONE;
	for (uint32_t i = chain->line_count; i > 0 && node != IDMAP_NONE; i--) {
		uint32_t number = chain->line_first + i - 1;
		const struct name_line *line = &c->names->lines[number];
		bool shown = true;

		if (!sieve_is_idle(c->sieve) &&
		    !sieve_line(c->sieve, at->frame, number, &path, &shown))
			return IDMAP_NONE;
		if (shown)
			node = child_of(c, node, line->function, line->inlined);
	}
	return node;
}

/* The node that a stack ends in, below `top` (the root, or the group's node). */
static uint32_t land(struct collapsing *c, uint32_t stack, uint32_t group, uint32_t top)
{
	const struct node *trie = c->merge->view.nodes;
	size_t trail = 0;
	uint32_t node;

	for (; stack && c->landed_in[stack] != group + 1; stack = trie[stack].parent) {
		if (!WORK_GROW(&c->work->arena, c->trail, trail, c->trail_capacity))
			return IDMAP_NONE;
		c->trail[trail++] = stack;
	}
	node = stack ? c->landed[stack] : top;
	while (trail && node != IDMAP_NONE) {
		stack = c->trail[--trail];
		node = descend(c, node, stack);
		c->landed[stack] = node;
		c->landed_in[stack] = group + 1;
	}
	return node;
}

/* Whether the value's stack is shown; else it is counted as filtered. False when over budget. */
static bool passes(struct collapsing *c, const struct merge_value *value, bool *ret)
{
	uint64_t bits;

	*ret = true;
	if (sieve_is_idle(c->sieve))
		return true;
	if (!sieve_stack(c->sieve, value->stack, &bits))
		return false;
	*ret = sieve_shows_stack(c->sieve, bits);
	if (!*ret)
		c->filtered = work_add(c->filtered, value->value);
	return true;
}

static int land_all(struct collapsing *c, const uint32_t *group_names, struct err *err)
{
	for (size_t i = 0; i < c->merge->values_count; i++) {
		const struct merge_value *value = &c->merge->values[i];
		uint32_t top = 0, node;
		bool shown;
		int rc = work_tick(c->work, 32, err);

		if (rc)
			return rc;
		if (!passes(c, value, &shown))
			return work_over_budget(c->work, err);
		if (!shown)
			continue;
		if (group_names)
			top = child_of(c, 0, group_names[value->group], false);
		node = top == IDMAP_NONE ? top : land(c, value->stack, value->group, top);
		if (node == IDMAP_NONE)
			return work_over_budget(c->work, err);
		c->nodes[node].self = work_add(c->nodes[node].self, value->value);
	}
	return 0;
}

static void sum_totals(struct collapsing *c)
{
	for (size_t i = c->nodes_count; i-- > 0;) {
		struct growing *node = &c->nodes[i];

		node->total = work_add(node->total, node->self);
		if (i)
			c->nodes[node->parent].total =
				work_add(c->nodes[node->parent].total, node->total);
	}
}

struct order_context {
	const struct growing *nodes;
	const uint32_t *function_ranks;
};

static int sibling_order(const void *left, const void *right, void *context)
{
	const struct order_context *order = context;
	const struct growing *a = &order->nodes[*(const uint32_t *)left];
	const struct growing *b = &order->nodes[*(const uint32_t *)right];

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return order->function_ranks[a->function] < order->function_ranks[b->function] ? -1 : 1;
}

static int function_order(const void *left, const void *right, void *context)
{
	const struct tree_function *functions = context;
	uint32_t a_id = *(const uint32_t *)left, b_id = *(const uint32_t *)right;
	const struct tree_function *a = &functions[a_id], *b = &functions[b_id];
	int order = slice_compare(a->name, b->name);

	if (!order)
		order = slice_compare(a->mapping, b->mapping);
	if (!order)
		order = slice_compare(a->file, b->file);
	return order ? order : (a_id > b_id) - (a_id < b_id);
}

static uint32_t *rank_functions(struct collapsing *c)
{
	size_t count = c->names->functions_count;
	uint32_t *order = arena_new_array(&c->work->arena, uint32_t, count);
	uint32_t *ranks = arena_new_array(&c->work->arena, uint32_t, count);

	if (!order || !ranks)
		return NULL;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), function_order, c->names->functions);
	for (size_t i = 0; i < count; i++)
		ranks[order[i]] = (uint32_t)i;
	return ranks;
}

/* Children of node i, sorted: children[starts[i]] .. children[starts[i + 1]]. */
struct family {
	uint32_t *starts;
	uint32_t *children;
};

static int sort_siblings(struct collapsing *c, struct family *ret, struct err *err)
{
	struct order_context order = { c->nodes, rank_functions(c) };
	struct arena *arena = &c->work->arena;
	uint32_t *fill = arena_new_array(arena, uint32_t, c->nodes_count + 1);

	ret->starts = arena_new_array(arena, uint32_t, c->nodes_count + 1);
	ret->children = arena_new_array(arena, uint32_t, c->nodes_count);
	if (!order.function_ranks || !fill || !ret->starts || !ret->children)
		return work_over_budget(c->work, err);
	for (size_t i = 1; i < c->nodes_count; i++)
		ret->starts[c->nodes[i].parent + 1]++;
	for (size_t i = 1; i <= c->nodes_count; i++)
		ret->starts[i] += ret->starts[i - 1];
	memcpy(fill, ret->starts, (c->nodes_count + 1) * sizeof(*fill));
	for (size_t i = 1; i < c->nodes_count; i++)
		ret->children[fill[c->nodes[i].parent]++] = (uint32_t)i;
	for (size_t i = 0; i < c->nodes_count; i++) {
		uint32_t count = ret->starts[i + 1] - ret->starts[i];
		int rc = work_tick(c->work, count, err);

		if (rc)
			return rc;
		if (count > 1)
			qsort_r(&ret->children[ret->starts[i]], count, sizeof(*ret->children),
				sibling_order, &order);
	}
	return 0;
}

/*
 * Pre-order without recursion: a node's place is known when its parent's is, because the sizes of
 * all subtrees are. `sizes` and `places` are indexed by growing node.
 */
static int lay_out(struct collapsing *c, const struct family *family, struct tree *tree,
		   struct err *err)
{
	uint32_t *sizes = arena_new_array(&c->work->arena, uint32_t, c->nodes_count);
	uint32_t *places = arena_new_array(&c->work->arena, uint32_t, c->nodes_count);
	uint32_t count = (uint32_t)c->nodes_count;

	tree->nodes = arena_new_array(&tree->arena, struct tree_node, count);
	if (!sizes || !places || !tree->nodes)
		return work_over_budget(c->work, err);
	for (uint32_t i = count; i-- > 0;) {
		sizes[i]++;
		if (i)
			sizes[c->nodes[i].parent] += sizes[i];
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct growing *node = &c->nodes[i];
		uint32_t place = places[i], parent = i ? places[node->parent] : 0;
		uint32_t depth = i ? tree->nodes[parent].depth + 1 : 0;
		uint32_t next = place + 1;

		tree->nodes[place] = (struct tree_node){ parent,	depth,	    node->function,
							 node->inlined, node->self, node->total };
		if (depth > tree->depth_max)
			tree->depth_max = depth;
		for (uint32_t at = family->starts[i]; at < family->starts[i + 1]; at++) {
			places[family->children[at]] = next;
			next += sizes[family->children[at]];
		}
	}
	tree->nodes_count = count;
	tree->total = tree->nodes[0].total;
	return 0;
}

static int copy_functions(struct tree *tree, const struct name_table *names, struct err *err)
{
	tree->functions =
		arena_new_array(&tree->arena, struct tree_function, names->functions_count);
	if (!tree->functions)
		return work_over_budget(names->work, err);
	memcpy(tree->functions, names->functions,
	       names->functions_count * sizeof(*tree->functions));
	tree->functions_count = (uint32_t)names->functions_count;
	return 0;
}

int collapse_into(struct tree *tree, struct work *work, const struct merge *merge,
		  struct name_table *names, struct sieve *sieve, const uint32_t *group_names,
		  struct err *err)
{
	struct collapsing c = { .work = work, .merge = merge, .names = names, .sieve = sieve };
	struct family family;
	int rc;

	c.landed = arena_new_array(&work->arena, uint32_t, merge->view.nodes_count);
	c.landed_in = arena_new_array(&work->arena, uint32_t, merge->view.nodes_count);
	if (!c.landed || !c.landed_in ||
	    !WORK_GROW(&work->arena, c.nodes, c.nodes_count, c.nodes_capacity))
		return work_over_budget(work, err);
	c.nodes[c.nodes_count++] = (struct growing){ 0 };
	work_add_map(work, &c.map);
	rc = land_all(&c, group_names, err);
	if (!rc) {
		sum_totals(&c);
		rc = sort_siblings(&c, &family, err);
	}
	if (!rc)
		rc = lay_out(&c, &family, tree, err);
	if (!rc)
		rc = copy_functions(tree, names, err);
	tree->filtered = c.filtered;
	work_drop_map(work, &c.map);
	return rc;
}
