/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/trie_prune.h"

#include <assert.h>

#define NODES_PER_VALUE 8u
#define WORD_BITS 64u

/* The nodes that stay, by bit, and how many stay before each word. */
struct staying {
	uint64_t *words;
	uint32_t *before;
	uint32_t count;
};

bool trie_prune_pays(const struct merge_trie *trie)
{
	return trie->values_count < trie->view.nodes_count / NODES_PER_VALUE;
}

static void mark(const struct merge_trie *trie, struct staying *staying)
{
	assert(trie->view.nodes_count > 0);
	staying->words[0] = 1; /* the root */
	for (size_t i = 0; i < trie->values_count; i++) {
		uint32_t node = trie->values[i].stack;

		while (!(staying->words[node / WORD_BITS] >> node % WORD_BITS & 1)) {
			staying->words[node / WORD_BITS] |= 1ull << node % WORD_BITS;
			node = trie->view.nodes[node].parent;
		}
	}
}

/* The new number of a node that stays. */
static uint32_t number_of(const struct staying *staying, uint32_t node)
{
	uint64_t lower = staying->words[node / WORD_BITS] & ((1ull << node % WORD_BITS) - 1);

	return staying->before[node / WORD_BITS] + (uint32_t)__builtin_popcountll(lower);
}

static void take_nodes(const struct staying *staying, size_t words_count, const struct node *from,
		       struct node *to)
{
	uint32_t count = 0;

	for (size_t word = 0; word < words_count; word++) {
		for (uint64_t left = staying->words[word]; left; left &= left - 1) {
			const struct node *node =
				&from[word * WORD_BITS + (size_t)__builtin_ctzll(left)];

			if (count)
				to[count] = (struct node){ number_of(staying, node->parent),
							   node->frame };
			count++;
		}
	}
}

bool trie_prune_apply(struct merge_trie *trie, struct arena *arena)
{
	size_t words_count = trie->view.nodes_count / WORD_BITS + 1;
	struct staying staying = { .words = arena_new_array(arena, uint64_t, words_count),
				   .before = arena_new_array(arena, uint32_t, words_count) };
	struct node *nodes;

	assert(trie->view.nodes_count > 0);
	assert(trie->values || !trie->values_count);
	if (!staying.words || !staying.before)
		return false;
	mark(trie, &staying);
	for (size_t word = 0; word < words_count; word++) {
		staying.before[word] = staying.count;
		staying.count += (uint32_t)__builtin_popcountll(staying.words[word]);
	}
	nodes = arena_new_array(arena, struct node, staying.count);
	if (!nodes)
		return false;
	take_nodes(&staying, words_count, trie->view.nodes, nodes);
	for (size_t i = 0; i < trie->values_count; i++)
		trie->values[i].stack = number_of(&staying, trie->values[i].stack);
	trie->view.nodes = nodes;
	trie->view.nodes_count = staying.count;
	return true;
}
