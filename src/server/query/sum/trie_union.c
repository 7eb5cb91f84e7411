/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/trie_union.h"

#include <assert.h>

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
static int add_stacks(struct trie_union *united, struct work *work, const struct segment *segment,
		      uint32_t *nodes, struct err *err)
{
	struct accumulate_sum *sums;
	struct arena scratch;
	int rc;

	assert(united->with_trie);
	arena_init(&scratch, work->limit_bytes);
	sums = arena_new_array(&scratch, struct accumulate_sum, segment->slots_count);
	for (uint32_t slot = 0; sums && slot < segment->slots_count; slot++)
		sums[slot].stack = nodes[slot];
	rc = sums ? trie_add(&united->trie, work, &segment->view, sums, segment->slots_count, err)
		  : work_over_budget(work, err);
	for (uint32_t slot = 0; !rc && slot < segment->slots_count; slot++)
		nodes[slot] = sums[slot].stack;
	arena_free(&scratch);
	return rc;
}

static int add_segment(struct trie_union *united, struct work *work, size_t number, struct err *err)
{
	struct segment *segment = united->segments[number];
	int rc = work_load_stacks(work, segment, err);

	assert(number < united->segments_count);
	if (rc)
		return rc;
	united->nodes[number] = nodes_of(segment, &work->arena);
	if (!united->nodes[number])
		rc = work_over_budget(work, err);
	if (!rc && united->with_trie)
		rc = add_stacks(united, work, segment, united->nodes[number], err);
	if (!rc && !united->with_trie) {
		united->view = segment->view;
		united->loaded = true;
		return 0;
	}
	work_drop_stacks(work, segment);
	return rc;
}

/* Each node behind its parent and all below its elder siblings, and named so. */
static bool order_nodes(struct trie_union *united, struct arena *arena, struct arena *scratch)
{
	uint32_t count = united->view.nodes_count;
	struct merge_trie trie = { .view = united->view };
	uint32_t *places = arena_new_array(scratch, uint32_t, count);
	struct node *nodes = arena_new_array(arena, struct node, count);
	struct preorder preorder = { 0 };

	assert(united->view.nodes_count > 0);
	united->ends = arena_new_array(arena, uint32_t, count);
	if (!united->ends || !places || !nodes || !preorder_make(&preorder, scratch, &trie))
		return false;
	for (uint32_t place = 0; place < count; place++) {
		uint32_t node = preorder_node(&preorder, place);

		places[node] = place;
		united->ends[place] = place + preorder.nodes[node].size;
		nodes[place] = (struct node){ places[united->view.nodes[node].parent],
					      united->view.nodes[node].frame };
	}
	united->view.nodes = nodes;
	for (size_t i = 0; i < united->segments_count; i++)
		for (uint32_t slot = 0; slot < united->segments[i]->slots_count; slot++)
			united->nodes[i][slot] = places[united->nodes[i][slot]];
	return true;
}

static int finish(struct trie_union *united, struct work *work, struct err *err)
{
	struct arena scratch;
	bool done;

	if (united->with_trie) {
		work->other_bytes -= trie_bytes(&united->trie);
		trie_finish(&united->trie, &united->view);
	}
	arena_init(&scratch, work->limit_bytes);
	done = order_nodes(united, &work->arena, &scratch);
	arena_free(&scratch);
	if (united->with_trie) {
		if (done)
			trie_drop_nodes(&united->trie);
		work->other_bytes += trie_bytes(&united->trie);
	}
	return done ? work_check(work, err) : work_over_budget(work, err);
}

int trie_union_make(struct trie_union *united, struct work *work, struct segment *const *segments,
		    size_t count, struct err *err)
{
	int rc = 0;

	assert(count > 0);
	*united = (struct trie_union){ .segments = segments,
				       .segments_count = count,
				       .with_trie = count > 1 };
	if (united->with_trie) {
		trie_init(&united->trie);
		work->other_bytes += trie_bytes(&united->trie);
	}
	united->nodes = arena_new_array(&work->arena, uint32_t *, count);
	if (!united->nodes)
		return work_over_budget(work, err);
	for (size_t i = 0; !rc && i < count; i++)
		rc = add_segment(united, work, i, err);
	return rc ? rc : finish(united, work, err);
}

void trie_union_free(struct trie_union *united, struct work *work)
{
	assert(!united->loaded || !united->with_trie);
	if (united->loaded)
		work_drop_stacks(work, united->segments[0]);
	if (united->with_trie) {
		work->other_bytes -= trie_bytes(&united->trie);
		trie_free(&united->trie);
	}
	*united = (struct trie_union){ 0 };
}
