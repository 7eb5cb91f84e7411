/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trie - the frames and stacks of many segments in one trie, each distinct one once.
 *
 * Adding a segment that resembles an earlier one costs one look at a likely place per string, frame
 * and node (parts of one service have much the same things in much the same order), and otherwise a
 * hash look-up. One thread. Memory is from the heap, counted by trie_bytes.
 */
#ifndef FIRN_SERVER_QUERY_SUM_TRIE_H
#define FIRN_SERVER_QUERY_SUM_TRIE_H

#include "server/query/sum/accumulate.h"
#include "server/query/sum/children.h"

struct trie {
	char *string_bytes;
	struct string_ref *strings; /* 0 is "" */
	struct frame *frames;
	struct children nodes; /* keys are frames */
	size_t string_bytes_count, string_bytes_capacity;
	size_t strings_count, strings_capacity;
	size_t frames_count, frames_capacity;
	struct idmap string_map, frame_map;
	struct node *plain; /* instead of `nodes`, once it is finished */
	size_t plain_count;
};

void trie_init(struct trie *trie);
void trie_free(struct trie *trie);
size_t trie_bytes(const struct trie *trie);

/* Adds the stacks that sums name, and renames them: `stack` is the trie's node afterwards. */
int trie_add(struct trie *trie, struct work *work, const struct tables_view *view,
	     struct accumulate_sum *sums, size_t count, struct err *err);

/*
 * Ends adding, and frees what only adding needs. *ret has strings, frames and nodes as tables have
 * them, until trie_free.
 */
void trie_finish(struct trie *trie, struct tables_view *ret);

/* Aborts when a node is before its parent or has no frame; for what is not finished. */
void trie_check(const struct trie *trie);

/* Takes a finished trie: for callers with nodes of their own. */
void trie_drop_nodes(struct trie *trie);

#endif
