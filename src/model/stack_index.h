/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_index - finds stacks in large tables by what they say, and copies those that are missing.
 *
 * Ids mean something only inside their own tables, so a stack that is looked up by ids costs a
 * look-up for each of its frames and nodes. The index knows frames and nodes by keyed hashes of
 * their content, a node's made of its parent's and its frame's: a stack that is there costs one
 * look-up, one that is not costs one more for each node that is added.
 *
 * 96 bits stand for the content: 32 in the map, 64 beside it. The key is drawn once per process
 * (base/hash.h), so nobody outside can choose what collides, and the chance that any two of 2^24
 * nodes do is 2^-49.
 *
 * An index goes with one set of tables, all of whose nodes and frames were added through it. It
 * is used by the thread that writes the tables.
 */
#ifndef FIRN_MODEL_STACK_INDEX_H
#define FIRN_MODEL_STACK_INDEX_H

#include "base/hash.h"
#include "model/tables.h"

#define STACK_INDEX_MAPS 8u

/* Several maps: one that grows holds up its writer, and a large one does so for long. */
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
 * Stacks of copy->from on their way into copy->into. What was copied is in copy->nodes; what does
 * not fit stays TABLES_FULL there.
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

/* The stacks of all reports for which `takes` says so. */
void stack_copier_take(struct stack_copier *copier, bool (*takes)(void *context, uint32_t report),
		       void *context);

/* One stack; its id, or TABLES_FULL. */
uint32_t stack_copier_node(struct stack_copier *copier, uint32_t id);

#endif
