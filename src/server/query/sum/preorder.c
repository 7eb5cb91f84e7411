/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/preorder.h"

#include <assert.h>

#include "base/mem.h"

/* True if each node stands behind its parent and all below its elder siblings. */
static bool is_in_order(const struct tables_view *view)
{
	for (uint32_t i = 2; i < view->nodes_count; i++) {
		uint32_t at = i - 1, parent = view->nodes[i].parent;

		while (at > parent)
			at = view->nodes[at].parent;
		if (at != parent)
			return false;
	}
	return true;
}

static bool make_room(struct preorder *preorder, struct arena *arena, size_t count)
{
	assert(count > 0);
	if (preorder->capacity < count) {
		preorder->nodes = arena_new_array(arena, struct preorder_node, count);
		preorder->capacity = count;
		if (preorder->nodes)
			mem_prefer_huge_pages(preorder->nodes, count * sizeof(*preorder->nodes));
	}
	if (!preorder->is_trivial && preorder->order_capacity < count) {
		preorder->next = arena_new_array(arena, uint32_t, count);
		preorder->order = arena_new_array(arena, uint32_t, count);
		preorder->order_capacity = count;
	}
	return !arena->over_budget;
}

static void sum_up(struct preorder_node *nodes, const struct merge_trie *trie)
{
	uint32_t count = trie->view.nodes_count;

	assert(trie->view.nodes_count > 0);
	for (uint32_t i = 0; i < count; i++)
		nodes[i] = (struct preorder_node){ .size = 1 };
	for (size_t i = 0; i < trie->values_count; i++) {
		int64_t *total = &nodes[trie->values[i].stack].total;

		*total = work_add(*total, trie->values[i].value);
	}
	for (uint32_t i = count; i-- > 1;) {
		struct preorder_node *parent = &nodes[trie->view.nodes[i].parent];

		parent->total = work_add(parent->total, nodes[i].total);
		parent->size += nodes[i].size;
	}
}

bool preorder_make(struct preorder *preorder, struct arena *arena, const struct merge_trie *trie)
{
	uint32_t count = trie->view.nodes_count;

	assert(trie->view.nodes_count > 0);
	assert(trie->values || !trie->values_count);
	preorder->is_trivial = is_in_order(&trie->view);
	if (!make_room(preorder, arena, count))
		return false;
	sum_up(preorder->nodes, trie);
	if (preorder->is_trivial)
		return true;
	preorder->next[0] = 1;
	for (uint32_t i = 1; i < count; i++) {
		uint32_t parent = trie->view.nodes[i].parent, place = preorder->next[parent];

		preorder->order[place] = i;
		preorder->next[parent] += preorder->nodes[i].size;
		preorder->next[i] = place + 1;
	}
	return true;
}
