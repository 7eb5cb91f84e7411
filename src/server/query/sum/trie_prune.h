/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thin - of a trie few of whose nodes have values, those and their callers alone.
 *
 * A memtable has the stacks of all services, and a query is about one: what follows costs what
 * it has. Nodes keep their order; strings and frames are the same.
 */
#ifndef FIRN_SERVER_QUERY_SUM_TRIE_PRUNE_H
#define FIRN_SERVER_QUERY_SUM_TRIE_PRUNE_H

#include "server/query/sum/merge_trie.h"

/* True if there are so few values that it pays. */
bool trie_prune_pays(const struct merge_trie *trie);

/* Replaces the nodes, in `arena`, and renames the values' stacks. False when over budget. */
bool trie_prune_apply(struct merge_trie *trie, struct arena *arena);

#endif
