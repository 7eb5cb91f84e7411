/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding each stack by itself is wrong where it is seen: a hundred stacks of 1.5 each make 200,
 * and the mean is 150. So the whole is rounded, once, and dealt out from the root down.
 *
 * Invariant: a node has the floor of its exact mean or one more (nothing more when it is whole),
 * and its own value and its children's add up to it. This can be kept at each node: the floors of
 * the parts add up to at most the node's value, and the floors plus one of those that are not whole
 * to at least it. Parts with the largest remainders get the ones that are missing, so that most are
 * what they would be if they were rounded by themselves.
 *
 * Equal remainders are common (two reports make halves of everything). Then the order decides that
 * the names have: a node's own value first, functions by name and file, other frames by what they
 * are (binary, address), stacks of one node by their frames from the leaf on. Ids do not count,
 * because they differ from one snapshot to the next.
 *
 * The tree that is dealt to has, from the root: the side of a diff and whether filters show the
 * stack; the group; functions. Lines and addresses of one function are one node, as they are in the
 * answers; the stacks that end in a node are dealt its own value. The shown get their mean rounded,
 * half away from zero, and the hidden what then is missing of the mean of all.
 */
#include "server/query/shape/rounding.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/query/sum/children.h"

#define SELF 0u /* a part that is no child: the root is nobody's */
#define HIDDEN 1u
#define BASE 2u

/* What is dealt to: a node's child, its own value, or a stack that ends there. */
struct part {
	uint32_t id; /* node or SELF; index of a value */
	uint32_t frame;
	mean_wide floor, rest;
	bool gets_one;
};

struct level {
	mean_wide self, total; /* times the denominator */
	int64_t value, own;    /* what it is dealt, and what of it is its own */
	uint32_t frame;	       /* one of those it stands for; of a group its rank */
	uint32_t first, end;   /* of `order`: values that end here */
	bool is_base, is_group;
};

struct rounding {
	struct work *work;
	struct merge *merge;
	struct merge_trie *trie;
	const struct tables_view *view;
	struct filter_apply *applied;
	const uint32_t *ranks; /* by group, or NULL */
	struct children keys;  /* of functions with their file, and of frames without a function */
	uint32_t *frame_keys;  /* by frame; 0 = not known yet */
	struct children tree;
	struct level *levels; /* by node of the tree */
	size_t levels_capacity, counted_bytes;
	uint32_t *landed, *landed_in; /* by stack: its node, below that top */
	uint32_t *trail;
	size_t trail_capacity;
	uint32_t *ends;	 /* by value: its node */
	uint32_t *order; /* of values, by node */
	struct part *parts;
	size_t parts_count, parts_capacity;
};

static int texts_order(const struct tables_view *view, uint32_t a, uint32_t b)
{
	return a == b ? 0 : slice_compare(tables_text(view, a), tables_text(view, b));
}

static int numbers_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Orders frames by all members that frame_identity keeps. */
static int frames_order(const struct tables_view *view, uint32_t left, uint32_t right)
{
	struct frame a = frame_identity(&view->frames[left]);
	struct frame b = frame_identity(&view->frames[right]);
	int order = texts_order(view, a.function, b.function);

	order = order ? order : texts_order(view, a.file, b.file);
	order = order ? order : texts_order(view, a.build_id, b.build_id);
	order = order ? order : texts_order(view, a.mapping_file, b.mapping_file);
	order = order ? order : texts_order(view, a.system_name, b.system_name);
	order = order ? order : numbers_order(a.address, b.address);
	order = order ? order : numbers_order(a.line, b.line);
	order = order ? order : numbers_order(a.kind, b.kind);
	return order ? order : numbers_order(a.flags, b.flags);
}

/* Nodes with a function: by it and its file alone. */
static int functions_order(const struct tables_view *view, uint32_t left, uint32_t right)
{
	const struct frame *a = &view->frames[left], *b = &view->frames[right];
	int order;

	if (!a->function || !b->function)
		return frames_order(view, left, right);
	order = texts_order(view, a->function, b->function);
	return order ? order : texts_order(view, a->file, b->file);
}

static int remainders_order(const struct part *a, const struct part *b)
{
	if (a->rest != b->rest)
		return a->rest > b->rest ? -1 : 1;
	return 0;
}

/* For qsort_r. */
static int nodes_order(const void *left, const void *right, void *context)
{
	const struct part *a = left, *b = right;
	const struct rounding *r = context;
	int order = remainders_order(a, b);

	if (order)
		return order;
	if (a->id == SELF || b->id == SELF)
		return (a->id != SELF) - (b->id != SELF);
	if (r->levels[a->id].is_group)
		return numbers_order(a->frame, b->frame);
	return functions_order(r->view, a->frame, b->frame);
}

/* For qsort_r. */
static int stacks_order(const void *left, const void *right, void *context)
{
	const struct part *a = left, *b = right;
	const struct rounding *r = context;
	const struct node *nodes = r->view->nodes;
	uint32_t at = r->trie->values[a->id].stack, other = r->trie->values[b->id].stack;
	int order = remainders_order(a, b);

	for (; !order && at != other && at && other;
	     at = nodes[at].parent, other = nodes[other].parent)
		order = frames_order(r->view, nodes[at].frame, nodes[other].frame);
	return order;
}

static bool add_part(struct rounding *r, uint32_t id, uint32_t frame, mean_wide exact,
		     int64_t denominator)
{
	struct part part = { .id = id, .frame = frame, .floor = exact / denominator };

	part.rest = exact % denominator;
	if (part.rest < 0) {
		part.floor--;
		part.rest += denominator;
	}
	if (!WORK_GROW(&r->work->arena, r->parts, r->parts_count, r->parts_capacity))
		return false;
	r->parts[r->parts_count++] = part;
	return true;
}

/* Says which parts get one more than their floor, so that they add up to `value`. */
static void deal(struct rounding *r, int64_t value,
		 int (*order)(const void *, const void *, void *))
{
	mean_wide missing = value;
	size_t with_rest = 0;

	for (size_t i = 0; i < r->parts_count; i++) {
		missing = mean_add(missing, -r->parts[i].floor);
		with_rest += r->parts[i].rest != 0;
	}
	/* Outside of these bounds only where sums stopped at the ends of 64 or 128 bits. */
	if (missing <= 0)
		return;
	if (missing < (mean_wide)with_rest)
		qsort_r(r->parts, r->parts_count, sizeof(*r->parts), order, r);
	for (size_t i = 0; i < r->parts_count && missing > 0; i++) {
		r->parts[i].gets_one = r->parts[i].rest != 0;
		missing -= r->parts[i].gets_one;
	}
}

static int64_t part_value(const struct part *part)
{
	return mean_round(part->floor + part->gets_one, 1);
}

static int64_t denominator_of(const struct rounding *r, uint32_t node)
{
	return r->levels[node].is_base ? r->merge->base_denominator : r->merge->denominator;
}

/* A node's value to its children and itself. */
static bool deal_to_children(struct rounding *r, uint32_t node)
{
	struct level *level = &r->levels[node];
	uint32_t first = r->tree.nodes[node].child, at = first;
	int64_t denominator = denominator_of(r, node);

	r->parts_count = 0;
	if (level->self && !add_part(r, SELF, 0, level->self, denominator))
		return false;
	for (; at; at = r->tree.nodes[at].next == first ? 0 : r->tree.nodes[at].next)
		if (!add_part(r, at, r->levels[at].frame, r->levels[at].total, denominator))
			return false;
	deal(r, level->value, nodes_order);
	for (size_t i = 0; i < r->parts_count; i++) {
		if (r->parts[i].id == SELF)
			level->own = part_value(&r->parts[i]);
		else
			r->levels[r->parts[i].id].value = part_value(&r->parts[i]);
	}
	return true;
}

/* A node's own value to the stacks that end in it. */
static bool deal_to_stacks(struct rounding *r, uint32_t node)
{
	const struct level *level = &r->levels[node];

	r->parts_count = 0;
	for (uint32_t i = level->first; i < level->end; i++)
		if (!add_part(r, r->order[i], 0, r->trie->exact[r->order[i]],
			      denominator_of(r, node)))
			return false;
	deal(r, level->own, stacks_order);
	for (size_t i = 0; i < r->parts_count; i++)
		r->trie->values[r->parts[i].id].value = part_value(&r->parts[i]);
	return true;
}

static uint32_t key_of(struct rounding *r, uint32_t id)
{
	const struct frame *frame = &r->view->frames[id];

	if (!r->frame_keys[id])
		r->frame_keys[id] = children_of(&r->keys, children_of(&r->keys, 0, frame->function),
						frame->function ? frame->file : id);
	return r->frame_keys[id];
}

static uint32_t child_of(struct rounding *r, uint32_t parent, uint32_t key, uint32_t frame)
{
	size_t before = r->tree.count;
	uint32_t id = children_of(&r->tree, parent, key);

	if (id == CHILDREN_NONE || r->tree.count == before)
		return id;
	mem_grow(r->levels, id, r->levels_capacity);
	r->levels[id] =
		(struct level){ .frame = frame, .is_base = parent && r->levels[parent].is_base };
	return id;
}

/* The node that a stack ends in, below `top`. */
static uint32_t land(struct rounding *r, uint32_t stack, uint32_t top)
{
	const struct node *nodes = r->view->nodes;
	size_t trail = 0;
	uint32_t at;

	for (; stack && r->landed_in[stack] != top; stack = nodes[stack].parent) {
		if (!WORK_GROW(&r->work->arena, r->trail, trail, r->trail_capacity))
			return CHILDREN_NONE;
		r->trail[trail++] = stack;
	}
	at = stack ? r->landed[stack] : top;
	while (trail && at != CHILDREN_NONE) {
		stack = r->trail[--trail];
		at = child_of(r, at, key_of(r, nodes[stack].frame), nodes[stack].frame);
		r->landed[stack] = at;
		r->landed_in[stack] = top;
	}
	return at;
}

/* Below which node a value's stack begins. */
static uint32_t top_of(struct rounding *r, const struct merge_value *value, bool diff)
{
	uint32_t key = diff && value->group == 1 ? BASE : 0, top;
	uint64_t bits;

	if (!filter_apply_is_idle(r->applied)) {
		if (!filter_apply_stack(r->applied, value->stack, &bits))
			return CHILDREN_NONE;
		key |= filter_apply_shows_stack(r->applied, bits) ? 0 : HIDDEN;
	}
	top = child_of(r, 0, key, key);
	if (top == CHILDREN_NONE)
		return top;
	r->levels[top].is_base = key & BASE;
	if (!r->ranks)
		return top;
	top = child_of(r, top, r->ranks[value->group], r->ranks[value->group]);
	if (top != CHILDREN_NONE)
		r->levels[top].is_group = true;
	return top;
}

static void count_bytes(struct rounding *r)
{
	size_t bytes = children_bytes(&r->tree) + children_bytes(&r->keys) +
		       r->levels_capacity * sizeof(*r->levels);

	r->work->other_bytes += bytes - r->counted_bytes;
	r->counted_bytes = bytes;
}

static int land_values(struct rounding *r, bool diff, struct err *err)
{
	for (size_t i = 0; i < r->trie->values_count; i++) {
		uint32_t top = top_of(r, &r->trie->values[i], diff), at = top;
		int rc;

		if (top != CHILDREN_NONE)
			at = land(r, r->trie->values[i].stack, top);
		if (at == CHILDREN_NONE)
			return work_over_budget(r->work, err);
		r->ends[i] = at;
		r->levels[at].self = mean_add(r->levels[at].self, r->trie->exact[i]);
		r->levels[at].end++;
		if (i % WORK_TICKS_PER_CHECK == 0)
			count_bytes(r);
		rc = work_tick(r->work, 32, err);
		if (rc)
			return rc;
	}
	count_bytes(r);
	return work_check(r->work, err);
}

/* Totals, and the values of each node side by side. */
static void sum_up(struct rounding *r)
{
	uint32_t before = 0;

	for (size_t i = r->tree.count; i-- > 0;) {
		struct level *level = &r->levels[i];

		level->total = mean_add(level->total, level->self);
		if (i) {
			struct level *parent = &r->levels[r->tree.nodes[i].parent];

			parent->total = mean_add(parent->total, level->total);
		}
	}
	for (size_t i = 0; i < r->tree.count; i++) {
		uint32_t count = r->levels[i].end;

		r->levels[i].first = r->levels[i].end = before;
		before += count;
	}
	for (uint32_t i = 0; i < r->trie->values_count; i++)
		r->order[r->levels[r->ends[i]].end++] = i;
}

/* What is shown and what is hidden of each side. */
static void deal_to_sides(struct rounding *r)
{
	uint32_t sides[4] = { 0 };

	for (uint32_t i = 1; i < r->tree.count; i++)
		if (!r->tree.nodes[i].parent)
			sides[r->tree.nodes[i].key] = i;
	for (uint32_t side = 0; side <= BASE; side += BASE) {
		int64_t denominator =
			side == BASE ? r->merge->base_denominator : r->merge->denominator;
		mean_wide shown = r->levels[sides[side]].total, all = shown;

		if (!sides[side])
			shown = all = 0;
		else
			r->levels[sides[side]].value = mean_round(shown, denominator);
		if (!sides[side | HIDDEN])
			continue;
		all = mean_add(all, r->levels[sides[side | HIDDEN]].total);
		r->levels[sides[side | HIDDEN]].value =
			work_add(mean_round(all, denominator), -mean_round(shown, denominator));
	}
}

static int deal_all(struct rounding *r, struct err *err)
{
	deal_to_sides(r);
	for (uint32_t i = 1; i < r->tree.count; i++) {
		int rc;

		if (!deal_to_children(r, i) || !deal_to_stacks(r, i))
			return work_over_budget(r->work, err);
		rc = work_tick(r->work, 32, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void drop_zeros(struct merge_trie *trie)
{
	size_t kept = 0;

	for (size_t i = 0; i < trie->values_count; i++)
		if (trie->values[i].value)
			trie->values[kept++] = trie->values[i];
	trie->values_count = kept;
}

struct group_name {
	struct slice name;
	uint32_t group;
};

static int group_names_order(const void *left, const void *right)
{
	const struct group_name *a = left, *b = right;

	return slice_compare(a->name, b->name);
}

/* Ranks of groups by their names, from 1; equal names are one group. Values are ordered by group.
 */
static bool rank_groups(struct rounding *r, const struct slice *groups)
{
	size_t last = r->trie->values_count - 1, count = r->trie->values[last].group + 1u;
	struct group_name *names = arena_new_array(&r->work->arena, struct group_name, count);
	uint32_t *ranks = arena_new_array(&r->work->arena, uint32_t, count);

	if (!names || !ranks)
		return false;
	for (uint32_t i = 0; i < count; i++)
		names[i] = (struct group_name){ groups[i], i };
	qsort(names, count, sizeof(*names), group_names_order);
	for (uint32_t i = 0, rank = 1; i < count; i++) {
		if (i && group_names_order(&names[i - 1], &names[i]))
			rank++;
		ranks[names[i].group] = rank;
	}
	r->ranks = ranks;
	return true;
}

static int make_room(struct rounding *r, const struct slice *groups, struct err *err)
{
	struct arena *arena = &r->work->arena;
	size_t count = r->trie->values_count;

	r->frame_keys = arena_new_array(arena, uint32_t, r->view->frames_count);
	r->landed = arena_new_array(arena, uint32_t, r->view->nodes_count);
	r->landed_in = arena_new_array(arena, uint32_t, r->view->nodes_count);
	r->ends = arena_new_array(arena, uint32_t, count);
	r->order = arena_new_array(arena, uint32_t, count);
	if (arena->over_budget || (groups && !rank_groups(r, groups)))
		return work_over_budget(r->work, err);
	return 0;
}

static int round_trie(struct rounding *r, struct name_table *names, const struct slice *groups,
		      bool diff, struct err *err)
{
	int rc = name_view(names, r->view, err);

	if (!rc)
		rc = filter_apply_view(r->applied, err);
	if (!rc)
		rc = make_room(r, groups, err);
	if (rc)
		return rc;
	children_init(&r->keys);
	children_init(&r->tree);
	mem_grow(r->levels, 0, r->levels_capacity);
	r->levels[0] = (struct level){ 0 };
	rc = land_values(r, diff, err);
	if (!rc)
		sum_up(r);
	if (!rc)
		rc = deal_all(r, err);
	if (!rc)
		drop_zeros(r->trie);
	children_free(&r->keys);
	children_free(&r->tree);
	free(r->levels);
	r->work->other_bytes -= r->counted_bytes;
	return rc;
}

int rounding_apply(struct merge *merge, struct work *work, struct name_table *names,
		   struct filter_apply *applied, const struct slice *groups, bool diff,
		   struct err *err)
{
	struct rounding r = { .work = work, .merge = merge, .applied = applied };

	assert(merge->is_exact);
	assert(merge->denominator > 0 && (!diff || merge->base_denominator > 0));
	assert(merge->tries_count <= 1);
	merge->is_exact = false;
	if (!merge->tries_count || !merge->tries[0].values_count)
		return 0;
	r.trie = &merge->tries[0];
	r.view = &r.trie->view;
	return round_trie(&r, names, groups, diff, err);
}
