/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unresolved - why frames stay addresses, with the remedy in words, and their share of an answer.
 * Lives in the query's work memory; texts live in the tree's arena.
 */
#ifndef FIRN_SERVER_QUERY_TREE_UNRESOLVED_H
#define FIRN_SERVER_QUERY_TREE_UNRESOLVED_H

#include "server/query/tree/tree.h"
#include "server/query/work.h"

#define UNRESOLVED_SHOWN_MAX 20u /* in answers; the rest is in the sum alone */

enum unresolved_reason {
	UNRESOLVED_NO_FILE,
	UNRESOLVED_NO_SYMBOLS,
	UNRESOLVED_OUTSIDE_FILE,
	UNRESOLVED_BAD_FILE,
	UNRESOLVED_NO_BUILD_ID,
	UNRESOLVED_PENDING,
	UNRESOLVED_GENERATED,	  /* code in no file */
	UNRESOLVED_KERNEL,	  /* the agent could not see the kernel's names */
	UNRESOLVED_UNKNOWN_PLACE, /* in no known mapping */
	UNRESOLVED_REASONS
};

struct unresolved_place {
	enum unresolved_reason reason;
	struct slice mapping, build_id;
	struct slice detail; /* of UNRESOLVED_BAD_FILE, UNRESOLVED_NO_SYMBOLS */
};

struct unresolved_list {
	struct work *work;
	struct arena *strings;
	struct tree_unresolved *items;
	size_t count, capacity;
	struct idmap map;
};

void unresolved_begin(struct unresolved_list *list, struct work *work, struct arena *strings);

/* Its index + 1, made when new; IDMAP_NONE when over budget. */
uint32_t unresolved_add(struct unresolved_list *list, const struct unresolved_place *place);

/* The same of another answer's item, whose value does not matter. */
uint32_t unresolved_add_item(struct unresolved_list *list, const struct tree_unresolved *item);

/*
 * Counts the values when the tree is complete, sorts by them, and gives the list to the tree. (For
 * a tree without nodes, or a trimmed one, the values are known already.)
 */
int unresolved_into(struct tree *tree, const struct unresolved_list *list, struct err *err);

#endif
