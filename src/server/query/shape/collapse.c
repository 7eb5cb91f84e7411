/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/shape/collapse.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/query/sum/children.h"

/* What a node sums up, while the tree grows: in order of appearance. */
struct growing {
	int64_t self;
	int64_t total;
	bool inlined; /* wherever it occurs */
};

struct collapsing {
	struct work *work;
	const struct merge_trie *trie; /* that is met now */
	struct name_table *names;
	struct filter_apply *applied;
	int64_t filtered, base_filtered;
	struct tree_base *base; /* of a diff, by node of the tree */
	size_t base_capacity;
	struct tree_place *place; /* likewise, with `places` */
	size_t place_capacity;
	bool diff, places;
	struct children tree;  /* keys are functions; a parent comes before its children */
	struct growing *nodes; /* by node of the tree */
	size_t nodes_capacity;
	size_t counted_bytes; /* of both, in the work's */
	uint32_t *landed;     /* by stack: the node that it ends in, when it is ... */
	uint32_t *landed_in;  /* ... this group + 1 */
	size_t landed_capacity;
	uint32_t *trail;
	size_t trail_capacity;
};

static uint32_t child_of(struct collapsing *c, uint32_t parent, uint32_t function, bool inlined)
{
	size_t before = c->tree.count;
	uint32_t id = children_of(&c->tree, parent, function);

	if (id == CHILDREN_NONE)
		return IDMAP_NONE;
	if (c->tree.count > before) {
		mem_grow(c->nodes, id, c->nodes_capacity);
		c->nodes[id] = (struct growing){ .inlined = true };
		if (c->diff) {
			mem_grow(c->base, id, c->base_capacity);
			c->base[id] = (struct tree_base){ 0 };
		}
		if (c->places) {
			mem_grow(c->place, id, c->place_capacity);
			c->place[id] = (struct tree_place){ 0 };
		}
	}
	c->nodes[id].inlined &= inlined;
	return id;
}

static void add_place(struct collapsing *c, uint32_t node, uint32_t frame,
		      const struct name_line *line)
{
	const struct tree_place place = { .address = c->trie->view.frames[frame].address,
					  .line = line->line,
					  .is_known = true };

	tree_place_add(&c->place[node], &place);
}

/* One frame further from the root: the outermost function of its chain first. */
static uint32_t descend(struct collapsing *c, uint32_t node, uint32_t stack)
{
	const struct node *at = &c->trie->view.nodes[stack];
	const struct name_chain *chain = name_frame(c->names, at->frame);
	uint64_t path = 0;

	if (!chain || (!filter_apply_is_idle(c->applied) &&
		       !filter_apply_stack(c->applied, at->parent, &path)))
		return IDMAP_NONE;
	for (uint32_t i = chain->line_count; i > 0 && node != IDMAP_NONE; i--) {
		uint32_t number = chain->line_first + i - 1;
		const struct name_line *line = &c->names->lines[number];
		bool shown = true;

		if (!filter_apply_is_idle(c->applied) &&
		    !filter_apply_line(c->applied, at->frame, number, &path, &shown))
			return IDMAP_NONE;
		if (!shown)
			continue;
		node = child_of(c, node, line->function, line->inlined);
		if (c->places && node != IDMAP_NONE)
			add_place(c, node, at->frame, line);
	}
	return node;
}

/* The node that a stack ends in, below `top` (the root, or the group's node). */
static uint32_t land(struct collapsing *c, uint32_t stack, uint32_t group, uint32_t top)
{
	const struct node *trie = c->trie->view.nodes;
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

static bool is_base(const struct collapsing *c, const struct merge_value *value)
{
	return c->diff && value->group == 1;
}

/* True if the value's stack is shown; else it is counted as filtered. False when over budget. */
static bool passes(struct collapsing *c, const struct merge_value *value, bool *ret)
{
	uint64_t bits;

	*ret = true;
	if (filter_apply_is_idle(c->applied))
		return true;
	if (!filter_apply_stack(c->applied, value->stack, &bits))
		return false;
	*ret = filter_apply_shows_stack(c->applied, bits);
	if (!*ret && is_base(c, value))
		c->base_filtered = work_add(c->base_filtered, value->value);
	else if (!*ret)
		c->filtered = work_add(c->filtered, value->value);
	return true;
}

static void count_bytes(struct collapsing *c)
{
	size_t bytes = children_bytes(&c->tree) + c->nodes_capacity * sizeof(*c->nodes) +
		       c->base_capacity * sizeof(*c->base) + c->place_capacity * sizeof(*c->place);

	c->work->other_bytes += bytes - c->counted_bytes;
	c->counted_bytes = bytes;
}

/* Room for what is known of the trie's stacks: nothing yet. */
static int begin_trie(struct collapsing *c, const struct merge_trie *trie, struct err *err)
{
	size_t count = trie->view.nodes_count;
	struct arena *arena = &c->work->arena;
	int rc = name_view(c->names, &trie->view, err);

	assert(trie->view.nodes_count > 0);
	c->trie = trie;
	if (!rc)
		rc = filter_apply_view(c->applied, err);
	if (rc)
		return rc;
	if (c->landed_capacity >= count) {
		memset(c->landed_in, 0, count * sizeof(*c->landed_in));
		return 0;
	}
	c->landed = arena_new_array(arena, uint32_t, count);
	c->landed_in = arena_new_array(arena, uint32_t, count);
	c->landed_capacity = count;
	return c->landed && c->landed_in ? 0 : work_over_budget(c->work, err);
}

static int land_trie(struct collapsing *c, const struct merge_trie *trie,
		     const uint32_t *group_names, struct err *err)
{
	int rc = begin_trie(c, trie, err);

	assert(trie->values || !trie->values_count);
	for (size_t i = 0; !rc && i < trie->values_count; i++) {
		const struct merge_value *value = &trie->values[i];
		uint32_t top = 0, node;
		bool shown;

		if (i % WORK_TICKS_PER_CHECK == 0)
			count_bytes(c);
		rc = work_tick(c->work, 32, err);
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
		if (is_base(c, value))
			c->base[node].self = work_add(c->base[node].self, value->value);
		else
			c->nodes[node].self = work_add(c->nodes[node].self, value->value);
	}
	return rc;
}

static void sum_base_totals(struct collapsing *c)
{
	assert(c->tree.count > 0);
	for (size_t i = c->tree.count; c->diff && i-- > 0;) {
		struct tree_base *node = &c->base[i];

		node->total = work_add(node->total, node->self);
		if (i) {
			struct tree_base *parent = &c->base[c->tree.nodes[i].parent];

			parent->total = work_add(parent->total, node->total);
		}
	}
}

static void sum_totals(struct collapsing *c)
{
	assert(c->tree.count > 0);
	for (size_t i = c->tree.count; i-- > 0;) {
		struct growing *node = &c->nodes[i];

		node->total = work_add(node->total, node->self);
		if (i) {
			struct growing *parent = &c->nodes[c->tree.nodes[i].parent];

			parent->total = work_add(parent->total, node->total);
		}
	}
}

struct order_context {
	const struct growing *nodes;
	const struct tree_base *base; /* or NULL */
	const struct child_node *tree;
	const struct tree_function *functions;
};

static int64_t weight_of(const struct order_context *order, uint32_t node)
{
	int64_t total = order->nodes[node].total;

	return order->base ? work_add(total, order->base[node].total) : total;
}

static int sibling_order(const void *left, const void *right, void *context)
{
	const struct order_context *order = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (weight_of(order, a) != weight_of(order, b))
		return weight_of(order, a) > weight_of(order, b) ? -1 : 1;
	return name_order(order->functions, order->tree[a].key, order->tree[b].key);
}

/* Children of node i, sorted: children[starts[i]] .. children[starts[i + 1]]. */
struct family {
	uint32_t *starts;
	uint32_t *children;
};

static int sort_siblings(struct collapsing *c, struct family *ret, struct err *err)
{
	struct order_context order = { c->nodes, c->diff ? c->base : NULL, c->tree.nodes,
				       c->names->functions };
	struct arena *arena = &c->work->arena;
	uint32_t *fill = arena_new_array(arena, uint32_t, c->tree.count + 1);

	assert(c->tree.count > 0);
	ret->starts = arena_new_array(arena, uint32_t, c->tree.count + 1);
	ret->children = arena_new_array(arena, uint32_t, c->tree.count);
	if (!fill || !ret->starts || !ret->children)
		return work_over_budget(c->work, err);
	for (size_t i = 1; i < c->tree.count; i++)
		ret->starts[c->tree.nodes[i].parent + 1]++;
	for (size_t i = 1; i <= c->tree.count; i++)
		ret->starts[i] += ret->starts[i - 1];
	memcpy(fill, ret->starts, (c->tree.count + 1) * sizeof(*fill));
	for (size_t i = 1; i < c->tree.count; i++)
		ret->children[fill[c->tree.nodes[i].parent]++] = (uint32_t)i;
	for (size_t i = 0; i < c->tree.count; i++) {
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
	uint32_t *sizes = arena_new_array(&c->work->arena, uint32_t, c->tree.count);
	uint32_t *places = arena_new_array(&c->work->arena, uint32_t, c->tree.count);
	uint32_t count = (uint32_t)c->tree.count;

	assert(family->starts && family->children);
	tree->nodes = arena_new_array(&tree->arena, struct tree_node, count);
	if (c->diff)
		tree->base = arena_new_array(&tree->arena, struct tree_base, count);
	if (c->places)
		tree->places = arena_new_array(&tree->arena, struct tree_place, count);
	if (!sizes || !places || !tree->nodes || (c->diff && !tree->base) ||
	    (c->places && !tree->places))
		return work_over_budget(c->work, err);
	for (uint32_t i = count; i-- > 0;) {
		sizes[i]++;
		if (i)
			sizes[c->tree.nodes[i].parent] += sizes[i];
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct growing *node = &c->nodes[i];
		const struct child_node *at_tree = &c->tree.nodes[i];
		uint32_t place = places[i], parent = i ? places[at_tree->parent] : 0;
		uint32_t depth = i ? tree->nodes[parent].depth + 1 : 0;
		uint32_t next = place + 1;

		tree->nodes[place] = (struct tree_node){ .parent = parent,
							 .depth = depth,
							 .function = i ? at_tree->key : 0,
							 .inlined = i && node->inlined,
							 .self = node->self,
							 .total = node->total };
		if (c->diff)
			tree->base[place] = c->base[i];
		if (c->places)
			tree->places[place] = c->place[i];
		if (depth > tree->depth_max)
			tree->depth_max = depth;
		for (uint32_t at = family->starts[i]; at < family->starts[i + 1]; at++) {
			places[family->children[at]] = next;
			next += sizes[family->children[at]];
		}
	}
	tree->nodes_count = count;
	tree->total = tree->nodes[0].total;
	tree->base_total = c->diff ? tree->base[0].total : 0;
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
		  struct name_table *names, struct filter_apply *applied,
		  const uint32_t *group_names, bool diff, bool places, struct err *err)
{
	struct collapsing c = {
		.work = work, .names = names, .applied = applied, .diff = diff, .places = places
	};
	struct family family;
	int rc = 0;

	assert(merge->tries || !merge->tries_count);
	children_init(&c.tree);
	mem_grow(c.nodes, 0, c.nodes_capacity);
	c.nodes[0] = (struct growing){ 0 };
	mem_grow(c.base, 0, c.base_capacity);
	c.base[0] = (struct tree_base){ 0 };
	mem_grow(c.place, 0, c.place_capacity);
	c.place[0] = (struct tree_place){ 0 };
	for (size_t i = 0; !rc && i < merge->tries_count; i++)
		rc = land_trie(&c, &merge->tries[i], group_names, err);
	count_bytes(&c);
	if (!rc) {
		sum_totals(&c);
		sum_base_totals(&c);
		rc = sort_siblings(&c, &family, err);
	}
	if (!rc)
		rc = lay_out(&c, &family, tree, err);
	if (!rc)
		rc = copy_functions(tree, names, err);
	tree->filtered = c.filtered;
	tree->base_filtered = c.base_filtered;
	children_free(&c.tree);
	free(c.nodes);
	free(c.base);
	free(c.place);
	work->other_bytes -= c.counted_bytes;
	return rc;
}
