/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariant: a branch that waits stands for every node, of every trie, that the same functions lead
 * to (its members), and its total is the sum of theirs. Branches and members are two stacks, and
 * the members of the branch on top are the last ones: to expand it is to take them off and to push
 * those of its children. So the tries are never merged, and memory goes with the branches that are
 * open, not with the tree.
 *
 * Why top down: a picture of a thousand pixels shows some thousand nodes of millions, and no child
 * is wider than its parent. What is cut is therefore cut with all below it, unread and unnamed.
 * Totals have to be known before; a parent stands before its children in a trie, so one pass from
 * the end gives them all.
 *
 * The difficulty is addresses that are called alike: each may be too narrow, and all together wide
 * enough. Before naming them, totals are summed in buckets by a hash of that name. A bucket has at
 * least what its names have, so only members of wide buckets need a name.
 */
#include "server/query/shape/trim.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

#define BUCKETS 4096u /* of addresses, to bound what those of equal names may have */
/* Reasons on the way to a node: a bit for all together, and one for each of the first of a trie. */
#define ANY_MISSING 1u
#define BITS 32u

/* What is known of a frame before it is named. */
struct trim_frame {
	uint32_t missing; /* why it has no name; 0: it has */
	uint32_t bucket;  /* + 1, of its address if that is in its name; equal for equal names */
};

/* What children have whose addresses fall into it, while node `of` is expanded. */
struct bucket {
	int64_t total;
	uint64_t of;
};

/* What is known of a node of a trie. */
struct trim_node {
	int64_t total;	      /* 0: there is no value below */
	uint32_t first, next; /* child and sibling with a total; 0 = none */
};

/* A trie, and what is known of it. */
struct trim_trie {
	const struct merge_trie *trie;
	struct name_column names;
	struct trim_node *nodes;
	struct trim_frame *frames; /* of the trie */
};

/*
 * What a frame of the current trie adds to the path of a node. One byte each, so that they stay in
 * the cache.
 */
enum mark {
	MARK_NONE, /* not visited yet */
	MARK_NAMED,
	MARK_LATE, /* without a name, for a reason that got no bit; from here on by bits */
};

struct member {
	uint32_t trie, node;
	uint32_t lines; /* of its frame's chain, innermost ones, that are still to come */
};

/* A member of a child, while a node is expanded. */
struct candidate {
	struct member member;
	int64_t total;
	uint32_t sibling;
};

/* A child of the node that is expanded, by function. */
struct sibling {
	uint32_t function;
	bool inlined;
	int64_t total;
	size_t members; /* how many, then where the next is put */
};

/* A node that waits to be written and expanded: the last first, its members at the end. */
struct branch {
	struct tree_node node;
	size_t member_first;
};

struct trimming {
	struct work *work;
	struct name_table *names;
	struct trim_trie *tries;
	size_t tries_count;
	int64_t total, least; /* of all; that a node needs */
	/* By reason: what is below such frames, and what ends in them; 0 is for all together. */
	struct missing_value {
		int64_t below, leaf;
	} * missing_values;
	size_t missing_values_capacity;
	uint8_t *marks;		    /* enum mark, by frame of the current trie */
	uint32_t bit_missing[BITS]; /* reasons in the current trie, by bit */
	uint32_t bits_used;
	uint32_t *open; /* bits of the path, by node of the current trie */
	uint64_t summed_nodes,
		covered; /* nodes of tries with a total; members stand for the latter */
	struct member *members;
	size_t members_count, members_capacity;
	struct branch *branches;
	size_t branches_count, branches_capacity;
	struct candidate *candidates;
	size_t candidates_count, candidates_capacity;
	struct sibling *siblings;
	size_t siblings_count, siblings_capacity;
	uint32_t *sibling_of; /* by function: + 1, while a node is expanded */
	size_t sibling_of_capacity;
	uint32_t *order; /* of siblings that are kept */
	size_t order_capacity;
	struct bucket *buckets;
	bool any_shared; /* some bucket is wide enough by what is narrow alone */
	struct tree_node *nodes;
	int64_t *cut;
	size_t nodes_count, nodes_capacity, cut_capacity;
};

bool trim_is_wanted(const struct query_params *params)
{
	return params->nodes_only && params->width_px && !params->group_by_count &&
	       !(params->filters && params->filters->count);
}

bool trim_suffices(const struct query_params *params, const struct merge *merge)
{
	int64_t total = 0;

	if (!trim_is_wanted(params))
		return false;
	for (size_t i = 0; i < merge->tries_count; i++) {
		const struct merge_trie *trie = &merge->tries[i];

		for (size_t v = 0; v < trie->values_count; v++)
			if (trie->values[v].value < 0 ||
			    __builtin_add_overflow(total, trie->values[v].value, &total))
				return false;
	}
	return true;
}

/* Totals, and children where there is one. */
static uint64_t sum_up(const struct merge_trie *trie, struct trim_node *nodes)
{
	uint64_t summed = 0;

	assert(trie->view.nodes_count > 0);
	for (size_t i = 0; i < trie->values_count; i++)
		nodes[trie->values[i].stack].total += trie->values[i].value;
	for (uint32_t i = trie->view.nodes_count; i-- > 1;) {
		struct trim_node *parent = &nodes[trie->view.nodes[i].parent];

		if (!nodes[i].total)
			continue;
		parent->total += nodes[i].total;
		nodes[i].next = parent->first;
		parent->first = i;
		summed++;
	}
	return summed;
}

/* False when over budget. */
static bool sum_trie(struct trimming *t, const struct merge_trie *trie, struct trim_trie *ret)
{
	uint32_t count = trie->view.nodes_count;
	struct arena *arena = &t->work->arena;
	struct trim_trie summed = {
		.trie = trie,
		.nodes = arena_new_array(arena, struct trim_node, count),
		.frames = arena_new_array(arena, struct trim_frame, trie->view.frames_count),
	};

	assert(trie->values || !trie->values_count);
	if (arena->over_budget || !name_column_begin(t->names, &trie->view, &summed.names))
		return false;
	mem_prefer_huge_pages(summed.nodes, count * sizeof(*summed.nodes));
	t->summed_nodes += sum_up(trie, summed.nodes);
	t->total += summed.nodes[0].total;
	*ret = summed;
	return true;
}

static uint8_t mark_of(struct trimming *t, uint32_t missing)
{
	uint32_t bit = 1;

	if (!missing)
		return MARK_NAMED;
	while (bit < t->bits_used && t->bit_missing[bit] != missing)
		bit++;
	if (bit == BITS)
		return MARK_LATE;
	t->bit_missing[bit] = missing;
	if (bit == t->bits_used)
		t->bits_used++;
	return (uint8_t)(MARK_LATE + bit);
}

/* Its mark: of a frame of the trie whose names are on turn. MARK_NONE when over budget. */
static uint8_t mark_frame(struct trimming *t, const struct trim_trie *summed, uint32_t id)
{
	const struct tables_view *view = &summed->trie->view;
	uint64_t address = view->frames[id].address;
	bool is_address;
	uint32_t missing = name_missing(t->names, id, &is_address);

	assert(id < summed->trie->view.frames_count);
	if (missing == IDMAP_NONE)
		return MARK_NONE;
	while (t->missing_values_capacity <= missing) {
		size_t before = t->missing_values_capacity;

		t->missing_values =
			work_grown(&t->work->arena, t->missing_values, sizeof(*t->missing_values),
				   before, &t->missing_values_capacity);
		if (!t->missing_values)
			return MARK_NONE;
	}
	if (is_address &&
	    name_has_address(tables_text(view, view->frames[id].mapping_file), address))
		summed->frames[id].bucket = hash_mix(0, address) % BUCKETS + 1;
	summed->frames[id].missing = missing;
	return t->marks[id] = mark_of(t, missing);
}

/* True if there is a frame for that reason on the way to a node. */
static bool is_on_path(const struct trim_trie *summed, uint32_t node, uint32_t missing)
{
	const struct node *nodes = summed->trie->view.nodes;

	assert(node < summed->trie->view.nodes_count);
	while (node && summed->frames[nodes[node].frame].missing != missing)
		node = nodes[node].parent;
	return node;
}

/* What is below a node counts once for its reason, and once for all together. Bits of the way. */
static uint32_t enter_missing(struct trimming *t, const struct trim_trie *summed, uint32_t id,
			      uint8_t mark)
{
	const struct node *node = &summed->trie->view.nodes[id];
	uint32_t bit = mark > MARK_LATE ? 1u << (mark - MARK_LATE) : 0;
	uint32_t open = t->open[node->parent], missing;

	assert(id < summed->trie->view.nodes_count);
	if (bit & open)
		return open;
	missing = summed->frames[node->frame].missing;
	if (!(open & ANY_MISSING))
		t->missing_values[0].below += summed->nodes[id].total;
	if (bit || !is_on_path(summed, node->parent, missing))
		t->missing_values[missing].below += summed->nodes[id].total;
	return open | ANY_MISSING | bit;
}

static void count_leaves(struct trimming *t, const struct trim_trie *summed)
{
	const struct merge_trie *trie = summed->trie;

	for (size_t i = 0; i < trie->values_count; i++) {
		uint32_t stack = trie->values[i].stack, missing;

		if (!stack || !summed->nodes[stack].total)
			continue;
		missing = summed->frames[trie->view.nodes[stack].frame].missing;
		if (!missing)
			continue;
		t->missing_values[0].leaf += trie->values[i].value;
		t->missing_values[missing].leaf += trie->values[i].value;
	}
}

/* The nodes with totals, callers first: which of them have no name. */
static int count_missing(struct trimming *t, const struct trim_trie *summed, struct err *err)
{
	const struct tables_view *view = &summed->trie->view;
	bool any = false;

	name_use_column(t->names, &summed->names);
	t->bits_used = 1;
	memset(t->marks, MARK_NONE, view->frames_count);
	for (uint32_t id = 1; id < view->nodes_count; id++) {
		const struct node *node = &view->nodes[id];
		uint8_t mark = t->marks[node->frame];
		int rc = work_tick(t->work, 1, err);

		if (rc)
			return rc;
		if (!summed->nodes[id].total)
			continue;
		if (!mark)
			mark = mark_frame(t, summed, node->frame);
		if (!mark)
			return work_over_budget(t->work, err);
		any |= mark != MARK_NAMED;
		t->open[id] = mark == MARK_NAMED ? t->open[node->parent]
						 : enter_missing(t, summed, id, mark);
	}
	if (any)
		count_leaves(t, summed);
	return 0;
}

static bool add_candidate(struct trimming *t, struct member member, int64_t total)
{
	assert(member.trie < t->tries_count);
	if (!WORK_GROW(&t->work->arena, t->candidates, t->candidates_count, t->candidates_capacity))
		return false;
	t->candidates[t->candidates_count++] =
		(struct candidate){ .member = member, .total = total };
	return true;
}

static uint32_t frame_of(const struct trimming *t, const struct member *member)
{
	return t->tries[member->trie].trie->view.nodes[member->node].frame;
}

/* What candidates called like this one by their address have. NULL: it is not. */
static struct bucket *bucket_of(const struct trimming *t, const struct member *member)
{
	uint32_t bucket = t->tries[member->trie].frames[frame_of(t, member)].bucket;

	return bucket ? &t->buckets[bucket - 1] : NULL;
}

/* A child of a member's, whose address may be the name of others', too. */
static bool add_child(struct trimming *t, struct member member, int64_t total)
{
	struct bucket *bucket = bucket_of(t, &member);

	assert(member.trie < t->tries_count);
	if (!bucket)
		return add_candidate(t, member, total);
	if (bucket->of != t->nodes_count)
		*bucket = (struct bucket){ .of = t->nodes_count };
	bucket->total += total;
	t->any_shared |= bucket->total >= t->least && (total < t->least || bucket->total != total);
	return total < t->least || add_candidate(t, member, total);
}

/* Children that are narrow alone, but not with others that may be called the same. */
static bool add_narrow_children(struct trimming *t, const struct member *of)
{
	const struct trim_trie *summed = &t->tries[of->trie];

	for (uint32_t at = summed->nodes[of->node].first; at; at = summed->nodes[at].next) {
		struct member member = { of->trie, at, 0 };
		const struct bucket *bucket = bucket_of(t, &member);

		if (!bucket || summed->nodes[at].total >= t->least || bucket->total < t->least)
			continue;
		if (!add_candidate(t, member, summed->nodes[at].total))
			return false;
	}
	return true;
}

/*
 * Takes the members off from `first` on. What is below them, one line or frame, and may be wide
 * enough, are candidates. Below members at the end of their chain alone that is nothing when all of
 * it together is too narrow.
 */
static bool find_candidates(struct trimming *t, size_t first, int64_t *ret_below)
{
	bool within = false;
	int64_t below = 0;

	assert(first <= t->members_count);
	t->candidates_count = 0;
	t->any_shared = false;
	for (size_t i = first; i < t->members_count; i++) {
		struct member member = t->members[i];
		const struct trim_trie *summed = &t->tries[member.trie];
		const struct trim_node *of = &summed->nodes[member.node];

		if (member.lines && !add_candidate(t, member, of->total))
			return false;
		within |= member.lines;
		t->covered += !member.lines;
		below += member.lines ? of->total : 0;
		for (uint32_t at = member.lines ? 0 : of->first; at; at = summed->nodes[at].next) {
			int64_t total = summed->nodes[at].total;

			below += total;
			if (!add_child(t, (struct member){ member.trie, at, 0 }, total))
				return false;
		}
	}
	for (size_t i = first; t->any_shared && i < t->members_count; i++)
		if (!t->members[i].lines && !add_narrow_children(t, &t->members[i]))
			return false;
	if (!within && below < t->least)
		t->candidates_count = 0;
	t->members_count = first;
	*ret_below = below;
	return true;
}

/* The sibling for a function, made when new. NULL when over budget. */
static struct sibling *sibling_of(struct trimming *t, uint32_t function)
{
	assert(function < t->names->functions_count);
	while (t->sibling_of_capacity <= function) {
		size_t before = t->sibling_of_capacity;

		t->sibling_of = work_grown(&t->work->arena, t->sibling_of, sizeof(*t->sibling_of),
					   before, &t->sibling_of_capacity);
		if (!t->sibling_of)
			return NULL;
	}
	if (!t->sibling_of[function]) {
		if (!WORK_GROW(&t->work->arena, t->siblings, t->siblings_count,
			       t->siblings_capacity))
			return NULL;
		t->siblings[t->siblings_count++] =
			(struct sibling){ .function = function, .inlined = true };
		t->sibling_of[function] = (uint32_t)t->siblings_count;
	}
	return &t->siblings[t->sibling_of[function] - 1];
}

/* The next line of a candidate's chain, outermost first, leads to its sibling. */
static bool place_candidate(struct trimming *t, struct candidate *candidate)
{
	struct member *member = &candidate->member;
	const struct name_chain *chain;
	const struct name_line *line;
	struct sibling *sibling;

	assert(candidate->member.trie < t->tries_count);
	name_use_column(t->names, &t->tries[member->trie].names);
	chain = name_frame(t->names, frame_of(t, member));
	if (!chain)
		return false;
	if (!member->lines)
		member->lines = chain->line_count;
	line = &t->names->lines[chain->line_first + --member->lines];
	sibling = sibling_of(t, line->function);
	if (!sibling)
		return false;
	sibling->total += candidate->total;
	sibling->inlined &= line->inlined;
	sibling->members++;
	candidate->sibling = (uint32_t)(sibling - t->siblings);
	return true;
}

/* Candidates find their siblings. */
static int place_candidates(struct trimming *t, struct err *err)
{
	t->siblings_count = 0;
	for (size_t i = 0; i < t->candidates_count; i++) {
		int rc = work_tick(t->work, 4, err);

		if (rc)
			return rc;
		if (!place_candidate(t, &t->candidates[i]))
			return work_over_budget(t->work, err);
	}
	for (size_t i = 0; i < t->siblings_count; i++)
		t->sibling_of[t->siblings[i].function] = 0;
	return 0;
}

static int sibling_order(const void *left, const void *right, void *context)
{
	const struct trimming *t = context;
	const struct sibling *a = &t->siblings[*(const uint32_t *)left];
	const struct sibling *b = &t->siblings[*(const uint32_t *)right];

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return name_order(t->names->functions, a->function, b->function);
}

/* Siblings that are wide enough, as they are drawn. False when over budget. */
static bool sort_siblings(struct trimming *t, size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < t->siblings_count; i++) {
		if (t->siblings[i].total < t->least)
			continue;
		if (!WORK_GROW(&t->work->arena, t->order, count, t->order_capacity))
			return false;
		t->order[count++] = (uint32_t)i;
	}
	if (count > 1)
		qsort_r(t->order, count, sizeof(*t->order), sibling_order, t);
	*ret_count = count;
	return true;
}

/* Branches for the siblings in the order, so that the first is taken first. */
static bool add_branches(struct trimming *t, size_t count, uint32_t parent)
{
	assert(t->branches_count <= t->branches_capacity);
	for (size_t i = count; i-- > 0;) {
		struct sibling *sibling = &t->siblings[t->order[i]];
		size_t members = sibling->members;

		if (!WORK_GROW(&t->work->arena, t->branches, t->branches_count,
			       t->branches_capacity))
			return false;
		t->branches[t->branches_count++] = (struct branch){
			.node = { .parent = parent,
				  .depth = t->nodes[parent].depth + 1,
				  .function = sibling->function,
				  .inlined = sibling->inlined,
				  .total = sibling->total },
			.member_first = t->members_count,
		};
		sibling->members = t->members_count;
		while (t->members_capacity < t->members_count + members)
			if (!WORK_GROW(&t->work->arena, t->members, t->members_capacity,
				       t->members_capacity))
				return false;
		t->members_count += members;
	}
	return true;
}

/* Members of the siblings that are kept go to these; what they have is not cut. */
static void deal_out(struct trimming *t, uint32_t node)
{
	for (size_t i = 0; i < t->candidates_count; i++) {
		const struct candidate *candidate = &t->candidates[i];
		struct sibling *sibling = &t->siblings[candidate->sibling];

		if (sibling->total < t->least)
			continue;
		t->members[sibling->members++] = candidate->member;
		t->cut[node] -= candidate->total;
	}
}

/* Writes the last branch as a node, and finds its children. */
static int expand(struct trimming *t, struct err *err)
{
	struct branch branch = t->branches[--t->branches_count];
	uint32_t node = (uint32_t)t->nodes_count;
	struct arena *arena = &t->work->arena;
	int64_t below;
	size_t kept;
	int rc;

	if (!WORK_GROW(arena, t->nodes, t->nodes_count, t->nodes_capacity) ||
	    !WORK_GROW(arena, t->cut, t->nodes_count, t->cut_capacity) ||
	    !find_candidates(t, branch.member_first, &below))
		return work_over_budget(t->work, err);
	branch.node.self = branch.node.total - below;
	t->nodes[node] = branch.node;
	t->cut[node] = below;
	t->nodes_count++;
	rc = place_candidates(t, err);
	if (rc)
		return rc;
	if (!sort_siblings(t, &kept) || !add_branches(t, kept, node))
		return work_over_budget(t->work, err);
	deal_out(t, node);
	return 0;
}

/* The root, whose members are all tries' roots. */
static int begin(struct trimming *t, const struct merge *merge, uint32_t width_px, struct err *err)
{
	struct arena *arena = &t->work->arena;
	uint32_t nodes_max = 1, frames_max = 0;

	assert(width_px > 0);
	for (size_t i = 0; i < merge->tries_count; i++) {
		const struct tables_view *view = &merge->tries[i].view;

		nodes_max = view->nodes_count > nodes_max ? view->nodes_count : nodes_max;
		frames_max = view->frames_count > frames_max ? view->frames_count : frames_max;
	}
	t->open = arena_new_array(arena, uint32_t, nodes_max);
	t->marks = arena_new_array(arena, uint8_t, frames_max);
	t->tries_count = merge->tries_count;
	t->tries = arena_new_array(arena, struct trim_trie, t->tries_count);
	t->buckets = arena_new_array(arena, struct bucket, BUCKETS);
	if (!t->open || !t->marks || !t->tries || !t->buckets ||
	    !WORK_GROW(arena, t->branches, 0, t->branches_capacity))
		return work_over_budget(t->work, err);
	for (size_t i = 0; i < t->tries_count; i++) {
		if (!sum_trie(t, &merge->tries[i], &t->tries[i]) ||
		    !WORK_GROW(arena, t->members, t->members_count, t->members_capacity))
			return work_over_budget(t->work, err);
		t->members[t->members_count++] = (struct member){ .trie = (uint32_t)i };
	}
	t->branches[t->branches_count++] = (struct branch){ .node = { .total = t->total } };
	t->least = (int64_t)(((__int128)t->total + 2 * width_px - 1) / (2 * width_px));
	return work_check(t->work, err);
}

static void fill_unresolved(struct tree_unresolved *item, const struct missing_value *value)
{
	item->value = value->below;
	item->leaf = value->leaf;
}

static int give_tree(const struct trimming *t, struct tree *tree, struct err *err)
{
	const struct name_table *names = t->names;

	assert(t->nodes_count > 0);
	tree->nodes = arena_new_array(&tree->arena, struct tree_node, t->nodes_count);
	tree->cut = arena_new_array(&tree->arena, int64_t, t->nodes_count);
	tree->functions =
		arena_new_array(&tree->arena, struct tree_function, names->functions_count);
	if (!tree->nodes || !tree->cut || !tree->functions)
		return work_over_budget(t->work, err);
	memcpy(tree->nodes, t->nodes, t->nodes_count * sizeof(*tree->nodes));
	memcpy(tree->cut, t->cut, t->nodes_count * sizeof(*tree->cut));
	memcpy(tree->functions, names->functions,
	       names->functions_count * sizeof(*tree->functions));
	tree->functions_count = (uint32_t)names->functions_count;
	tree->nodes_count = (uint32_t)t->nodes_count;
	/* The tries' roots are covered, too. */
	tree->nodes_untrimmed = t->nodes_count + t->summed_nodes + t->tries_count - t->covered;
	tree->total = t->total;
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		if (tree->nodes[i].depth > tree->depth_max)
			tree->depth_max = tree->nodes[i].depth;
	for (size_t i = 0; i < names->unresolved.count && i + 1 < t->missing_values_capacity; i++)
		fill_unresolved(&names->unresolved.items[i], &t->missing_values[i + 1]);
	if (t->missing_values_capacity) {
		tree->unresolved_value = t->missing_values[0].below;
		tree->unresolved_leaf = t->missing_values[0].leaf;
	}
	return 0;
}

int trim_into(struct tree *tree, struct work *work, const struct merge *merge,
	      struct name_table *names, uint32_t width_px, struct err *err)
{
	struct trimming t = { .work = work, .names = names };
	uint64_t pending;
	int rc = begin(&t, merge, width_px, err);

	assert(width_px > 0);
	for (size_t i = 0; !rc && i < t.tries_count; i++)
		rc = count_missing(&t, &t.tries[i], err);
	pending = names->pending;
	while (!rc && t.branches_count)
		rc = expand(&t, err);
	names->pending = pending; /* they are asked for again */
	return rc ? rc : give_tree(&t, tree, err);
}
