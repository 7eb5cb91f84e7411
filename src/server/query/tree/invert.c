/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node of the turned tree stands for items: values of the original, each with the original's node
 * that comes next on its way up. The items of a node lie side by side, and those of its children
 * are parts of them: to expand a node is to deal its items out to its children in their order. What
 * waits is a stack of such parts, the largest sibling on top, so that nodes are written in
 * pre-order.
 *
 * Why so: upside down, a tree can have nearly one node per stack and depth. The items are at most
 * the original's nodes, so memory goes with the original and with the nodes that are kept, and a
 * node that is too narrow to be seen is counted with all below it, but never stored.
 */
#include "server/query/tree/invert.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/query/work.h"

/* A value, of the original's node `of`. */
struct item {
	uint32_t of;
	uint32_t next; /* node on its way up; the root or a group's: it has arrived */
};

/* A child of the node that is expanded, by function. */
struct sibling {
	uint32_t function;
	bool inlined;
	uint32_t items; /* how many, then where the next is put */
	int64_t total;
	struct tree_base base; /* of a diff */
	struct tree_place place;
};

/* A node that waits to be written and expanded. */
struct branch {
	struct tree_node node;
	struct tree_base base;
	struct tree_place place;
	uint32_t first, count; /* items */
	bool is_hidden;	       /* it is too narrow: counted, not written */
};

struct inverting {
	const struct tree *from;
	bool outermost;	   /* values are totals, of calls of one function; else self values */
	uint32_t width_px; /* 0: everything is written */
	struct item *items, *dealt;
	size_t items_count, items_capacity;
	struct branch *branches;
	size_t branches_count, branches_capacity;
	struct sibling *siblings;
	size_t siblings_count, siblings_capacity;
	uint32_t *sibling_of; /* by function: + 1, while a node is expanded */
	uint32_t *order;      /* of siblings */
	size_t order_capacity;
	struct tree_node *nodes; /* as they are written */
	struct tree_base *base;	 /* likewise, each NULL when the original has none */
	struct tree_place *places;
	int64_t *cut; /* NULL without a width */
	size_t count, capacity;
	size_t count_max; /* that the tree's arena has room for */
	uint64_t counted; /* with those that are hidden */
	bool is_over;
};

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

static bool has_arrived(const struct tree *tree, const struct item *item)
{
	return !item->next || is_label(tree, item->next);
}

static void add_to(int64_t *sum, int64_t value)
{
	*sum = work_add(*sum, value);
}

static int64_t value_of(const struct inverting *inverting, const struct item *item)
{
	const struct tree_node *node = &inverting->from->nodes[item->of];

	return inverting->outermost ? node->total : node->self;
}

/* Of the side that is compared to. */
static int64_t base_of(const struct inverting *inverting, const struct item *item)
{
	const struct tree_base *base = inverting->from->base;

	if (!base)
		return 0;
	return inverting->outermost ? base[item->of].total : base[item->of].self;
}

static void add_item(struct inverting *inverting, uint32_t node)
{
	mem_grow(inverting->items, inverting->items_count, inverting->items_capacity);
	inverting->items[inverting->items_count++] = (struct item){ node, node };
}

static void add_all(struct inverting *inverting)
{
	const struct tree *tree = inverting->from;

	for (uint32_t i = 0; i < tree->nodes_count; i++)
		if (tree->nodes[i].self || (tree->base && tree->base[i].self))
			add_item(inverting, i);
}

/* Nodes are in pre-order: what comes after a call and is deeper was called by it. */
static void add_calls_of(struct inverting *inverting, struct slice function)
{
	const struct tree *tree = inverting->from;
	uint32_t inside = UINT32_MAX; /* depth of the call that we are in */

	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->depth > inside)
			continue;
		inside = UINT32_MAX;
		if (!slice_equal(tree->functions[node->function].name, function) ||
		    is_label(tree, i))
			continue;
		inside = node->depth;
		add_item(inverting, i);
	}
}

/* The sibling that a node of the original becomes a part of. */
static struct sibling *sibling_of(struct inverting *inverting, uint32_t node)
{
	const struct tree *tree = inverting->from;
	const struct tree_node *from = &tree->nodes[node];
	uint32_t *number = &inverting->sibling_of[from->function];
	struct sibling *sibling;

	assert(node && from->function < tree->functions_count);
	if (!*number) {
		mem_grow(inverting->siblings, inverting->siblings_count,
			 inverting->siblings_capacity);
		inverting->siblings[inverting->siblings_count++] =
			(struct sibling){ .function = from->function, .inlined = true };
		*number = (uint32_t)inverting->siblings_count;
	}
	sibling = &inverting->siblings[*number - 1];
	sibling->inlined &= from->inlined;
	if (tree->places)
		tree_place_add(&sibling->place, &tree->places[node]);
	return sibling;
}

/* The original's node that a value's next node is made of; below the root that is its group. */
static uint32_t step_of(const struct inverting *inverting, const struct item *item, bool below_root)
{
	uint32_t group = below_root ? group_of(inverting->from, item->next) : 0;

	return group ? group : item->next;
}

/* What ends in the node stays with it; the siblings learn what they get. */
static void count_items(struct inverting *inverting, struct branch *branch, bool is_root)
{
	assert(!inverting->siblings_count);
	for (uint32_t i = 0; i < branch->count; i++) {
		const struct item *item = &inverting->items[branch->first + i];
		int64_t value = value_of(inverting, item), base = base_of(inverting, item);
		struct sibling *sibling;

		if (is_root ? !item->next : has_arrived(inverting->from, item)) {
			add_to(&branch->node.self, value);
			add_to(&branch->base.self, base);
			continue;
		}
		sibling = sibling_of(inverting, step_of(inverting, item, is_root));
		sibling->items++;
		add_to(&sibling->total, value);
		add_to(&sibling->base.total, base);
	}
}

static int sibling_order(const void *left, const void *right, void *context)
{
	const struct inverting *inverting = context;
	uint32_t i = *(const uint32_t *)left, j = *(const uint32_t *)right;
	const struct sibling *a = &inverting->siblings[i], *b = &inverting->siblings[j];
	const struct tree_function *functions = inverting->from->functions;
	int64_t one = a->total + a->base.total, other = b->total + b->base.total;
	int order;

	if (one != other)
		return one < other ? 1 : -1;
	order = slice_compare(functions[a->function].name, functions[b->function].name);
	return order ? order : (i > j) - (i < j);
}

static void sort_siblings(struct inverting *inverting)
{
	size_t count = inverting->siblings_count;

	if (inverting->order_capacity < count) {
		inverting->order_capacity = 2 * count;
		inverting->order = mem_realloc(inverting->order, inverting->order_capacity,
					       sizeof(*inverting->order));
	}
	for (size_t i = 0; i < count; i++)
		inverting->order[i] = (uint32_t)i;
	if (count > 1)
		qsort_r(inverting->order, count, sizeof(*inverting->order), sibling_order,
			inverting);
}

/* Deals the items of a branch out to the siblings, which get their places in the order. */
static void deal_out(struct inverting *inverting, const struct branch *branch, bool is_root)
{
	const struct tree *tree = inverting->from;
	struct item *items;
	uint32_t at = 0;

	if (!inverting->siblings_count)
		return;
	items = &inverting->items[branch->first];
	for (size_t i = 0; i < inverting->siblings_count; i++) {
		struct sibling *sibling = &inverting->siblings[inverting->order[i]];
		uint32_t count = sibling->items;

		sibling->items = at;
		at += count;
	}
	assert(at <= branch->count);
	for (uint32_t i = 0; i < branch->count; i++) {
		struct item item = items[i];
		uint32_t step;

		if (is_root ? !item.next : has_arrived(tree, &item))
			continue;
		step = step_of(inverting, &item, is_root);
		if (step == item.next && !(is_root && is_label(tree, step)))
			item.next = tree->nodes[step].parent;
		inverting->dealt
			[inverting->siblings[inverting->sibling_of[tree->nodes[step].function] - 1]
				 .items++] = item;
	}
	memcpy(items, inverting->dealt, at * sizeof(*items));
}

/* As the picture's renderer decides (render_binary.c). */
static bool is_narrow(const struct inverting *inverting, int64_t total)
{
	return (__int128)total * 2 * inverting->width_px < inverting->nodes[0].total;
}

/* Branches for the siblings, so that the first in the order is taken first. */
static void add_branches(struct inverting *inverting, const struct branch *branch, uint32_t node)
{
	for (size_t i = inverting->siblings_count; i-- > 0;) {
		const struct sibling *sibling = &inverting->siblings[inverting->order[i]];
		uint32_t first = i ? inverting->siblings[inverting->order[i - 1]].items : 0;
		bool is_hidden = branch->is_hidden ||
				 (inverting->width_px && is_narrow(inverting, sibling->total));

		if (is_hidden && !branch->is_hidden)
			add_to(&inverting->cut[node], sibling->total);
		mem_grow(inverting->branches, inverting->branches_count,
			 inverting->branches_capacity);
		inverting->branches[inverting->branches_count++] = (struct branch){
			.node = { .parent = node,
				  .depth = branch->node.depth + 1,
				  .function = sibling->function,
				  .inlined = sibling->inlined,
				  .total = sibling->total },
			.base = { .total = sibling->base.total },
			.place = sibling->place,
			.first = branch->first + first,
			.count = sibling->items - first,
			.is_hidden = is_hidden,
		};
	}
}

static void make_room(struct inverting *inverting)
{
	const struct tree *tree = inverting->from;

	if (inverting->count < inverting->capacity)
		return;
	inverting->capacity = inverting->capacity ? 2 * inverting->capacity : 64;
	inverting->nodes =
		mem_realloc(inverting->nodes, inverting->capacity, sizeof(*inverting->nodes));
	if (tree->base)
		inverting->base =
			mem_realloc(inverting->base, inverting->capacity, sizeof(*inverting->base));
	if (tree->places)
		inverting->places = mem_realloc(inverting->places, inverting->capacity,
						sizeof(*inverting->places));
	if (inverting->width_px)
		inverting->cut =
			mem_realloc(inverting->cut, inverting->capacity, sizeof(*inverting->cut));
}

/* Returns the node's number. */
static uint32_t write_node(struct inverting *inverting, const struct branch *branch)
{
	size_t at = inverting->count;

	assert(at < inverting->count_max);
	make_room(inverting);
	inverting->nodes[at] = branch->node;
	if (inverting->base)
		inverting->base[at] = branch->base;
	if (inverting->places)
		inverting->places[at] = branch->place;
	if (inverting->cut)
		inverting->cut[at] = 0;
	inverting->count++;
	return (uint32_t)at;
}

/* Takes the branch on top. */
static void expand(struct inverting *inverting)
{
	struct branch branch = inverting->branches[--inverting->branches_count];
	bool is_root = !branch.node.depth;
	uint32_t node = 0;

	count_items(inverting, &branch, is_root);
	inverting->counted++;
	inverting->is_over = !branch.is_hidden && inverting->count == inverting->count_max;
	if (inverting->is_over)
		return; /* what comes of it is thrown away */
	if (!branch.is_hidden)
		node = write_node(inverting, &branch);
	sort_siblings(inverting);
	deal_out(inverting, &branch, is_root);
	add_branches(inverting, &branch, node);
	for (size_t i = 0; i < inverting->siblings_count; i++)
		inverting->sibling_of[inverting->siblings[i].function] = 0;
	inverting->siblings_count = 0;
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

static void *keep(struct tree *tree, const void *from, size_t count, size_t bytes)
{
	void *kept = arena_alloc_array(&tree->arena, count, bytes);

	if (kept)
		memcpy(kept, from, count * bytes);
	return kept;
}

/* False when there is no room for it; the tree is as it was then. */
static bool replace(const struct inverting *inverting, struct tree *tree)
{
	size_t count = inverting->count;
	struct tree_node *nodes;
	struct tree_base *base = NULL;
	struct tree_place *places = NULL;
	int64_t *cut = NULL;

	if (inverting->is_over)
		return false;
	nodes = keep(tree, inverting->nodes, count, sizeof(*nodes));
	if (inverting->base)
		base = keep(tree, inverting->base, count, sizeof(*base));
	if (inverting->places)
		places = keep(tree, inverting->places, count, sizeof(*places));
	if (inverting->cut)
		cut = keep(tree, inverting->cut, count, sizeof(*cut));
	if (tree->arena.over_budget)
		return false;
	tree->nodes = nodes;
	tree->base = base;
	tree->places = places;
	tree->cut = cut;
	tree->nodes_untrimmed = cut ? inverting->counted : 0;
	tree->base_total = base ? base[0].total : 0;
	tree->nodes_count = (uint32_t)count;
	tree->total = nodes[0].total;
	tree->depth_max = 0;
	for (size_t i = 0; i < count; i++)
		if (nodes[i].depth > tree->depth_max)
			tree->depth_max = nodes[i].depth;
	return true;
}

/* The root, which has everything. Where a value is negative, nothing is too narrow to be shown. */
static void begin(struct inverting *inverting)
{
	const struct tree *tree = inverting->from;
	struct branch root = { .node = { .function = tree->nodes[0].function },
			       .count = (uint32_t)inverting->items_count };

	for (size_t i = 0; i < inverting->items_count; i++) {
		int64_t value = value_of(inverting, &inverting->items[i]);

		add_to(&root.node.total, value);
		add_to(&root.base.total, base_of(inverting, &inverting->items[i]));
		if (value < 0 || tree->base)
			inverting->width_px = 0;
	}
	inverting->dealt = mem_new_array(struct item, inverting->items_count);
	inverting->sibling_of = mem_new_array(uint32_t, tree->functions_count);
	mem_grow(inverting->branches, inverting->branches_count, inverting->branches_capacity);
	inverting->branches[inverting->branches_count++] = root;
}

static void end(struct inverting *inverting)
{
	free(inverting->items);
	free(inverting->dealt);
	free(inverting->branches);
	free(inverting->siblings);
	free(inverting->sibling_of);
	free(inverting->order);
	free(inverting->nodes);
	free(inverting->base);
	free(inverting->places);
	free(inverting->cut);
}

int tree_invert(struct tree *tree, struct slice function, uint32_t width_px, struct err *err)
{
	struct inverting inverting = { .from = tree,
				       .outermost = function.len > 0,
				       .width_px = width_px,
				       .count_max = room_of(&tree->arena) };
	bool fits;

	assert(tree->nodes_count > 0 && !tree->cut);
	if (function.len)
		add_calls_of(&inverting, function);
	else
		add_all(&inverting);
	begin(&inverting);
	while (inverting.branches_count && !inverting.is_over)
		expand(&inverting);
	fits = replace(&inverting, tree);
	end(&inverting);
	return fits ? 0 : err_set(err, ERR_NO_MEMORY, "query: no room to turn the tree around");
}
