/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children - a trie whose nodes are found by (parent, key), made to be added to in much the order
 * in which it was made before.
 *
 * The children of a node hang in a ring that begins with the one that was met last. A few are found
 * by walking it; more are found by a hash table. So what was met in this order before, and what is
 * new below what is new, costs neither a hash nor a miss. Memory is the system's, counted by
 * children_bytes. Not thread-safe.
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
