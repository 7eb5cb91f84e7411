/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trie_prune - reduces a trie to the nodes with values and their callers.
 *
 * A memtable has the stacks of all services, and a query is about one: after pruning, later steps
 * cost only what that service has. Nodes keep their order; strings and frames stay.
 */
#ifndef FIRN_SERVER_QUERY_SUM_TRIE_PRUNE_H
#define FIRN_SERVER_QUERY_SUM_TRIE_PRUNE_H

#include "server/query/sum/merge_trie.h"

/* True if there are so few values that it pays. */
bool trie_prune_pays(const struct merge_trie *trie);

/* Replaces the nodes, in `arena`, and renames the values' stacks. False when over budget. */
bool trie_prune_apply(struct merge_trie *trie, struct arena *arena);

#endif
