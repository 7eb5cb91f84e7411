/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/trim.h"

#include <stdlib.h>

#include "base/hash.h"

#define BUCKETS 4096u	       /* of addresses, to bound what those of equal names may have */
#define HAS_ADDRESS (1u << 31) /* in lacks: the address is in the name */

/* A trie, and what is known of it. */
struct met_trie {
	const struct merge_trie *trie;
	struct name_column names;
	int64_t *totals;	/* by node; 0: there is no value below */
	uint32_t *first, *next; /* children with a total, by node; 0 = none */
	uint32_t *lacks; /* by frame: why it has no name + 1 (0: it has); 0 = not known yet */
};

/* Reasons for which frames have no names: what stands for a reason on the way from the root. */
struct lack {
	uint32_t open; /* nodes on the way */
	int64_t value;
};

struct member {
	uint32_t trie, node;
	uint32_t lines; /* of its frame's chain, innermost ones, that are still to come */
};

/* A member of a child, while a node is expanded. */
struct candidate {
	struct member member;
	int64_t total;
	uint32_t sibling; /* NO_SIBLING: it is cut */
};
#define NO_SIBLING UINT32_MAX

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
	struct met_trie *tries;
	size_t tries_count;
	int64_t total, least; /* of all; that a node needs */
	struct lack *lacks;   /* by reason; 0 is for all together */
	size_t lacks_capacity;
	uint64_t met, covered; /* nodes of tries with a total; those that members stand for */
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
	int64_t *buckets;
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

/* Totals, and children where there is one. False when over budget. */
static bool meet_trie(struct trimming *t, const struct merge_trie *trie, struct met_trie *ret)
{
	const struct node *nodes = trie->view.nodes;
	uint32_t count = trie->view.nodes_count;
	struct arena *arena = &t->work->arena;
	struct met_trie met = {
		.trie = trie,
		.totals = arena_new_array(arena, int64_t, count),
		.first = arena_new_array(arena, uint32_t, count),
		.next = arena_new_array(arena, uint32_t, count),
		.lacks = arena_new_array(arena, uint32_t, trie->view.frames_count),
	};

	if (arena->over_budget || !name_column_begin(t->names, &trie->view, &met.names))
		return false;
	for (size_t i = 0; i < trie->values_count; i++)
		met.totals[trie->values[i].stack] += trie->values[i].value;
	for (uint32_t i = count; i-- > 1;) {
		uint32_t parent = nodes[i].parent;

		if (!met.totals[i])
			continue;
		met.totals[parent] += met.totals[i];
		met.next[i] = met.first[parent];
		met.first[parent] = i;
		t->met++;
	}
	t->total += met.totals[0];
	*ret = met;
	return true;
}

/* Why a frame of the trie whose names are on turn has none; IDMAP_NONE when over budget. */
static uint32_t lack_of(struct trimming *t, const struct met_trie *met, uint32_t frame)
{
	uint32_t *lack = &met->lacks[frame];

	if (!*lack) {
		const struct tables_view *view = &met->trie->view;
		uint32_t reason = name_lack(t->names, frame);

		if (reason == IDMAP_NONE)
			return IDMAP_NONE;
		*lack = reason + 1;
		if (reason && name_has_address(tables_text(view, view->frames[frame].mapping_file),
					       view->frames[frame].address))
			*lack |= HAS_ADDRESS;
	}
	return (*lack & ~HAS_ADDRESS) - 1;
}

/* What is below a node counts once for its reason, and once for all together. */
static bool enter_lack(struct trimming *t, uint32_t lack, int64_t total)
{
	while (t->lacks_capacity <= lack) {
		size_t before = t->lacks_capacity;

		t->lacks = work_grown(&t->work->arena, t->lacks, sizeof(*t->lacks), before,
				      &t->lacks_capacity);
		if (!t->lacks)
			return false;
	}
	if (!t->lacks[0].open++)
		t->lacks[0].value += total;
	if (!t->lacks[lack].open++)
		t->lacks[lack].value += total;
	return true;
}

static void leave_lack(struct trimming *t, uint32_t lack)
{
	t->lacks[0].open--;
	t->lacks[lack].open--;
}

/* The nodes with totals, depth first: which of them have no name. */
static int count_lacks(struct trimming *t, const struct met_trie *met, struct err *err)
{
	const struct node *nodes = met->trie->view.nodes;
	uint32_t node = met->first[0];

	name_turn(t->names, &met->names);
	while (node) {
		uint32_t lack = lack_of(t, met, nodes[node].frame);
		int rc = work_tick(t->work, 4, err);

		if (rc)
			return rc;
		if (lack == IDMAP_NONE || (lack && !enter_lack(t, lack, met->totals[node])))
			return work_over_budget(t->work, err);
		if (met->first[node]) {
			node = met->first[node];
			continue;
		}
		for (; node; node = nodes[node].parent) {
			lack = lack_of(t, met, nodes[node].frame);
			if (lack)
				leave_lack(t, lack);
			if (met->next[node])
				break;
		}
		node = met->next[node];
	}
	return 0;
}

static bool add_candidate(struct trimming *t, struct member member, int64_t total)
{
	if (!WORK_GROW(&t->work->arena, t->candidates, t->candidates_count, t->candidates_capacity))
		return false;
	t->candidates[t->candidates_count++] =
		(struct candidate){ .member = member, .total = total, .sibling = NO_SIBLING };
	return true;
}

/* Takes the members off from `first` on; what is below them one line or frame are candidates. */
static bool find_candidates(struct trimming *t, size_t first)
{
	t->candidates_count = 0;
	for (size_t i = first; i < t->members_count; i++) {
		struct member member = t->members[i];
		const struct met_trie *met = &t->tries[member.trie];

		if (member.lines) {
			if (!add_candidate(t, member, met->totals[member.node]))
				return false;
			continue;
		}
		t->covered++;
		for (uint32_t at = met->first[member.node]; at; at = met->next[at])
			if (!add_candidate(t, (struct member){ member.trie, at, 0 },
					   met->totals[at]))
				return false;
	}
	t->members_count = first;
	return true;
}

static uint32_t frame_of(const struct trimming *t, const struct member *member)
{
	return t->tries[member->trie].trie->view.nodes[member->node].frame;
}

/*
 * The bucket of a candidate whose name is its address, NULL: it is not. Candidates of equal names
 * are in one bucket.
 */
static int64_t *bucket_of(const struct trimming *t, const struct candidate *candidate)
{
	const struct met_trie *met = &t->tries[candidate->member.trie];
	uint32_t frame = frame_of(t, &candidate->member);

	if (!(met->lacks[frame] & HAS_ADDRESS))
		return NULL;
	return &t->buckets[hash_mix(0, met->trie->view.frames[frame].address) % BUCKETS];
}

static void fill_buckets(struct trimming *t, bool empty)
{
	for (size_t i = 0; i < t->candidates_count; i++) {
		int64_t *bucket = bucket_of(t, &t->candidates[i]);

		if (bucket)
			*bucket = empty ? 0 : *bucket + t->candidates[i].total;
	}
}

/* The sibling for a function, made when new. NULL when over budget. */
static struct sibling *sibling_of(struct trimming *t, uint32_t function)
{
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

	name_turn(t->names, &t->tries[member->trie].names);
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

/* Candidates that may be wide enough find their siblings. */
static int place_candidates(struct trimming *t, struct err *err)
{
	t->siblings_count = 0;
	fill_buckets(t, false);
	for (size_t i = 0; i < t->candidates_count; i++) {
		struct candidate *candidate = &t->candidates[i];
		const int64_t *bucket = bucket_of(t, candidate);
		int rc = work_tick(t->work, 4, err);

		if (rc)
			return rc;
		if (bucket && *bucket < t->least)
			continue;
		if (!place_candidate(t, candidate))
			return work_over_budget(t->work, err);
	}
	fill_buckets(t, true);
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

/* What candidates have goes from the node's own value to its children, or to what is cut there. */
static void deal_out(struct trimming *t, uint32_t node)
{
	for (size_t i = 0; i < t->candidates_count; i++) {
		const struct candidate *candidate = &t->candidates[i];
		struct sibling *sibling = NULL;

		if (candidate->sibling != NO_SIBLING)
			sibling = &t->siblings[candidate->sibling];
		t->nodes[node].self -= candidate->total;
		if (sibling && sibling->total >= t->least)
			t->members[sibling->members++] = candidate->member;
		else
			t->cut[node] += candidate->total;
	}
}

/* Writes the last branch as a node, and finds its children. */
static int expand(struct trimming *t, struct err *err)
{
	struct branch branch = t->branches[--t->branches_count];
	uint32_t node = (uint32_t)t->nodes_count;
	struct arena *arena = &t->work->arena;
	size_t kept;
	int rc;

	if (!WORK_GROW(arena, t->nodes, t->nodes_count, t->nodes_capacity) ||
	    !WORK_GROW(arena, t->cut, t->nodes_count, t->cut_capacity) ||
	    !find_candidates(t, branch.member_first))
		return work_over_budget(t->work, err);
	branch.node.self = branch.node.total;
	t->nodes[node] = branch.node;
	t->cut[node] = 0;
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

	t->tries_count = merge->tries_count;
	t->tries = arena_new_array(arena, struct met_trie, t->tries_count);
	t->buckets = arena_new_array(arena, int64_t, BUCKETS);
	if (!t->tries || !t->buckets || !WORK_GROW(arena, t->branches, 0, t->branches_capacity))
		return work_over_budget(t->work, err);
	for (size_t i = 0; i < t->tries_count; i++) {
		if (!meet_trie(t, &merge->tries[i], &t->tries[i]) ||
		    !WORK_GROW(arena, t->members, t->members_count, t->members_capacity))
			return work_over_budget(t->work, err);
		t->members[t->members_count++] = (struct member){ .trie = (uint32_t)i };
	}
	t->branches[t->branches_count++] = (struct branch){ .node = { .total = t->total } };
	t->least = (int64_t)(((__int128)t->total + 2 * width_px - 1) / (2 * width_px));
	return work_check(t->work, err);
}

static int give_tree(const struct trimming *t, struct tree *tree, struct err *err)
{
	const struct name_table *names = t->names;

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
	tree->nodes_untrimmed = t->nodes_count + t->met + t->tries_count - t->covered;
	tree->total = t->total;
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		if (tree->nodes[i].depth > tree->depth_max)
			tree->depth_max = tree->nodes[i].depth;
	for (size_t i = 0; i < names->unresolved.count && i + 1 < t->lacks_capacity; i++)
		names->unresolved.items[i].value = t->lacks[i + 1].value;
	if (t->lacks_capacity)
		tree->unresolved_value = t->lacks[0].value;
	return 0;
}

int trim_into(struct tree *tree, struct work *work, const struct merge *merge,
	      struct name_table *names, uint32_t width_px, struct err *err)
{
	struct trimming t = { .work = work, .names = names };
	uint64_t pending;
	int rc = begin(&t, merge, width_px, err);

	for (size_t i = 0; !rc && i < t.tries_count; i++)
		rc = count_lacks(&t, &t.tries[i], err);
	pending = names->pending;
	while (!rc && t.branches_count)
		rc = expand(&t, err);
	names->pending = pending; /* they are asked for again */
	return rc ? rc : give_tree(&t, tree, err);
}
