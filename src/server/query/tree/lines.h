/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines - the stacks of a tree as values per line of source code, or per address of machine code.
 *
 * The self value of a line is that of the stacks that end in it, its total that of all stacks
 * through it, each counted once (recursion). A file of several builds has lines per build, because
 * it may differ. The tree needs its stacks (params.nodes_only false).
 */
#ifndef FIRN_SERVER_QUERY_TREE_LINES_H
#define FIRN_SERVER_QUERY_TREE_LINES_H

#include "base/err.h"
#include "server/query/query.h"
#include "server/query/tree/tree.h"

struct lines_value {
	uint64_t at; /* line, or address */
	int64_t self, total;
};

/* A source file, or a binary, as one build has it. Texts are the tree's. */
struct lines_place {
	struct slice file; /* empty: a binary */
	struct slice mapping, build_id;
	bool by_offset;		    /* of a binary: `at` are offsets in the file */
	int64_t self, total;	    /* of all its lines together, each stack once */
	struct lines_value *values; /* by `at` */
	size_t values_count;
	uint32_t *functions; /* of the tree, whose lines these are */
	size_t functions_count;
};

struct lines {
	struct arena arena;	    /* owns all below */
	struct lines_place *places; /* largest total first */
	size_t places_count;
};

/* Which lines; empty texts ask for nothing in particular. */
struct lines_wanted {
	struct slice function; /* name as shown */
	struct slice file;     /* path, or what it ends in from a '/' on */
	struct slice build_id;
	bool by_address; /* of native code alone; file means nothing then */
};

/* ERR_NO_MEMORY over `memory_bytes`; ends as `limits` say. lines_free is due after success. */
int lines_make(const struct tree *tree, const struct lines_wanted *wanted, size_t memory_bytes,
	       const struct query_limits *limits, struct lines *ret, struct err *err);
void lines_free(struct lines *lines);

#endif
