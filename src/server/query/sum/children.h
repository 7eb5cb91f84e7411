/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children - a trie whose nodes are found by (parent, key); fast if nodes are added in much the
 * same order again and again.
 *
 * The children of a node are a ring that begins with the one found last. Short rings are walked;
 * nodes of long ones are found by a hash table. So repeating an order, and adding below a new node,
 * costs no hash. Memory is from the heap, counted by children_bytes. Not thread-safe.
 */
#ifndef FIRN_SERVER_QUERY_SUM_CHILDREN_H
#define FIRN_SERVER_QUERY_SUM_CHILDREN_H

#include "base/idmap.h"

#define CHILDREN_NONE UINT32_MAX

struct child_node {
	uint32_t parent, key;
	uint32_t child; /* the one that was met last; 0 = none */
	uint32_t next;	/* sibling, in a ring */
};

struct children {
	struct child_node *nodes; /* 0 is the root */
	size_t count, capacity;
	struct idmap map; /* of nodes in long rings */
};

void children_init(struct children *children);
void children_free(struct children *children);
size_t children_bytes(const struct children *children);

/* Finds or adds: what is new has the largest id. CHILDREN_NONE when there are too many. */
uint32_t children_of(struct children *children, uint32_t parent, uint32_t key);

#endif
