/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_index - finds stacks in large tables by their content, and copies those that are missing.
 *
 * Ids are valid only inside their own tables, so finding a stack by ids takes one lookup for each
 * of its frames and nodes. The index identifies frames and nodes by keyed hashes of their content
 * (a node's hash is made from its parent's and its frame's): a stack that exists takes one lookup,
 * and a missing one takes one more for each node that is added.
 *
 * 96 bits represent the content: 32 in the map, 64 beside it. The key is random per process
 * (base/hash.h), so that senders cannot choose colliding stacks; the chance that any two of 2^24
 * nodes collide is 2^-49.
 *
 * An index belongs to one set of tables, whose nodes and frames were all added through it. Only
 * the thread that writes the tables uses it.
 */
#ifndef FIRN_MODEL_STACK_INDEX_H
#define FIRN_MODEL_STACK_INDEX_H

#include "base/hash.h"
#include "model/tables.h"

#define STACK_INDEX_MAPS 8u

/* Several maps, because a growing map blocks its writer, and a large one for long. */
struct stack_index_kind {
	struct idmap maps[STACK_INDEX_MAPS];
	struct vmarray hashes; /* 64 bits each, by id */
};

/* Zero-initialised is empty and valid. */
struct stack_index {
	struct stack_index_kind frames, nodes;
};

void stack_index_free(struct stack_index *index); /* empty, for tables that are complete */
size_t stack_index_bytes(const struct stack_index *index);

/*
 * Copies stacks of copy->from into copy->into. copy->nodes has the new ids; a node that did not fit
 * stays TABLES_FULL there.
 */
struct stack_copier {
	struct stack_index *index;
	struct tables_copy *copy;
	struct hash_wide *frames, *nodes; /* by id in copy->from; NULL until first needed */
	uint8_t *states;		  /* by node, likewise */
	uint32_t *list;			  /* scratch: nodes to look up */
};

void stack_copier_begin(struct stack_copier *copier, struct stack_index *index,
			struct tables_copy *copy);
void stack_copier_end(struct stack_copier *copier);

/* Copies the stacks of all reports for which `takes` returns true. */
void stack_copier_take(struct stack_copier *copier, bool (*takes)(void *context, uint32_t report),
		       void *context);

/* Copies one stack. Returns its id, or TABLES_FULL. */
uint32_t stack_copier_node(struct stack_copier *copier, uint32_t id);

#endif
