/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/trie_union.h"

#include "server/query/sum/preorder.h"

/* Nodes of a segment's slots, by slot. */
static uint32_t *nodes_of(const struct segment *segment, struct arena *arena)
{
	uint32_t *nodes = arena_new_array(arena, uint32_t, segment->slots_count);

	for (uint32_t slot = 0; nodes && slot < segment->slots_count; slot++)
		nodes[slot] = segment_node(segment, slot);
	return nodes;
}

/* Adds the loaded stacks of a segment; `nodes` are the trie's afterwards. */
static int add_stacks(struct joined *joined, struct work *work, const struct segment *segment,
		      uint32_t *nodes, struct err *err)
{
	struct accumulate_sum *sums;
	struct arena scratch;
	int rc;

	arena_init(&scratch, work->limit_bytes);
	sums = arena_new_array(&scratch, struct accumulate_sum, segment->slots_count);
	for (uint32_t slot = 0; sums && slot < segment->slots_count; slot++)
		sums[slot].stack = nodes[slot];
	rc = sums ? trie_add(&joined->trie, work, &segment->view, sums, segment->slots_count, err)
		  : work_over_budget(work, err);
	for (uint32_t slot = 0; !rc && slot < segment->slots_count; slot++)
		nodes[slot] = sums[slot].stack;
	arena_free(&scratch);
	return rc;
}

static int add_segment(struct joined *joined, struct work *work, size_t number, struct err *err)
{
	struct segment *segment = joined->segments[number];
	int rc = work_load_stacks(work, segment, err);

	if (rc)
		return rc;
	joined->nodes[number] = nodes_of(segment, &work->arena);
	if (!joined->nodes[number])
		rc = work_over_budget(work, err);
	if (!rc && joined->with_trie)
		rc = add_stacks(joined, work, segment, joined->nodes[number], err);
	if (!rc && !joined->with_trie) {
		joined->view = segment->view;
		joined->loaded = true;
		return 0;
	}
	work_drop_stacks(work, segment);
	return rc;
}

/* Each node behind its parent and all below its elder siblings, and named so. */
static bool order_nodes(struct joined *joined, struct arena *arena, struct arena *scratch)
{
	uint32_t count = joined->view.nodes_count;
	struct merge_trie trie = { .view = joined->view };
	uint32_t *places = arena_new_array(scratch, uint32_t, count);
	struct node *nodes = arena_new_array(arena, struct node, count);
	struct preorder preorder = { 0 };

	joined->ends = arena_new_array(arena, uint32_t, count);
	if (!joined->ends || !places || !nodes || !preorder_make(&preorder, scratch, &trie))
		return false;
	for (uint32_t place = 0; place < count; place++) {
		uint32_t node = preorder_node(&preorder, place);

		places[node] = place;
		joined->ends[place] = place + preorder.nodes[node].size;
		nodes[place] = (struct node){ places[joined->view.nodes[node].parent],
					      joined->view.nodes[node].frame };
	}
	joined->view.nodes = nodes;
	for (size_t i = 0; i < joined->segments_count; i++)
		for (uint32_t slot = 0; slot < joined->segments[i]->slots_count; slot++)
			joined->nodes[i][slot] = places[joined->nodes[i][slot]];
	return true;
}

static int finish(struct joined *joined, struct work *work, struct err *err)
{
	struct arena scratch;
	bool done;

	if (joined->with_trie) {
		work->other_bytes -= trie_bytes(&joined->trie);
		trie_finish(&joined->trie, &joined->view);
	}
	arena_init(&scratch, work->limit_bytes);
	done = order_nodes(joined, &work->arena, &scratch);
	arena_free(&scratch);
	if (joined->with_trie) {
		if (done)
			trie_drop_nodes(&joined->trie);
		work->other_bytes += trie_bytes(&joined->trie);
	}
	return done ? work_check(work, err) : work_over_budget(work, err);
}

int joined_make(struct joined *joined, struct work *work, struct segment *const *segments,
		size_t count, struct err *err)
{
	int rc = 0;

	*joined = (struct joined){ .segments = segments,
				   .segments_count = count,
				   .with_trie = count > 1 };
	if (joined->with_trie) {
		trie_init(&joined->trie);
		work->other_bytes += trie_bytes(&joined->trie);
	}
	joined->nodes = arena_new_array(&work->arena, uint32_t *, count);
	if (!joined->nodes)
		return work_over_budget(work, err);
	for (size_t i = 0; !rc && i < count; i++)
		rc = add_segment(joined, work, i, err);
	return rc ? rc : finish(joined, work, err);
}

void joined_free(struct joined *joined, struct work *work)
{
	if (joined->loaded)
		work_drop_stacks(work, joined->segments[0]);
	if (joined->with_trie) {
		work->other_bytes -= trie_bytes(&joined->trie);
		trie_free(&joined->trie);
	}
	*joined = (struct joined){ 0 };
}
