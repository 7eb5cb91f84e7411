/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - a merged call tree with names: what every answer is rendered from.
 *
 * Nodes are in pre-order: node 0 is the root ("total"), children follow their parent, siblings
 * sorted by cumulative value (largest first), then name. `locations` are the distinct frames at
 * full detail; `functions` what they collapse to. A node stands for one function (or one group-by
 * value, or one unnamed address) under its parent; `self` and `total` are in the selected column's
 * unit. Owned by one thread; tree_free frees all, strings included.
 */
#ifndef FIRN_SERVER_QUERY_TREE_TREE_H
#define FIRN_SERVER_QUERY_TREE_TREE_H

#include "base/arena.h"
#include "model/profile_type.h"
#include "model/tables.h"
#include "server/query/stats.h"

struct query_pool;

struct tree_function {
	/* As shown: "main", "libfoo.so+0x63a0" (a function without a name, by where it starts),
	 * "0x4a3f [libfoo.so]" (an address), "[truncated: too deep]". */
	struct slice name;
	struct slice system_name; /* "" when the same or unknown */
	struct slice file;	  /* source file, or "" */
	struct slice mapping;	  /* path of the binary, or "" */
	struct slice build_id;
	enum frame_kind kind;
	uint32_t start_line;
	uint8_t is_label;    /* a group-by value: name is the value */
	uint8_t is_address;  /* no function: it is called by an address, or "[anon]" */
	uint32_t unresolved; /* why it has no name: index into the list + 1; 0 = it has */
	uint64_t address;    /* where functions are told apart by it (name.h); else 0 */
};

/* Why frames of one binary stay addresses. */
struct tree_unresolved {
	const char *code;  /* for programs: "no_file"; a constant */
	struct slice text; /* for readers, with the remedy */
	struct slice mapping, build_id;
	int64_t value; /* of the stacks with such a frame, each counted once */
	int64_t leaf;  /* of those that end in one; of a tree without nodes not known */
};

/* A row of the table of functions (render_top), when a tree was not wanted. */
struct tree_row {
	struct slice name;
	int64_t flat, cum;
	bool called, inlined; /* has callers that call it, that have it inlined */
};

struct tree_node {
	uint32_t parent; /* node 0's is 0 */
	uint32_t depth;	 /* root 0 */
	uint32_t function;
	uint32_t inlined; /* 1 when every occurrence was inlined into the parent */
	int64_t self;
	int64_t total; /* self + children */
};

/*
 * Where in the code a node's occurrences were: the address (as stored) and the line of the one that
 * came first, and whether others differ. Root and group-by values are nowhere.
 */
struct tree_place {
	uint64_t address;
	uint32_t line;
	bool is_known, several_addresses, several_lines;
};

/* Adds what is known of another part of the same node. */
void tree_place_add(struct tree_place *place, const struct tree_place *other);

/* In a diff: the values of a node on the base side. */
struct tree_base {
	int64_t self, total;
};

/*
 * For exports that keep detail (pprof, source view): every stack with a value, at location level.
 * A location is a physical address with its inline chain.
 */
struct tree_line {
	uint32_t function;
	uint32_t line, column;
};
struct tree_location {
	uint32_t line_first, line_count; /* innermost first, at least one */
	struct slice mapping, build_id;
	uint64_t address; /* as stored */
	uint32_t address_is_offset;
	uint32_t unresolved; /* 1: its line is a function called by the address */
	enum frame_kind kind;
};
struct tree_stack {
	uint32_t location_first, location_count; /* into stack_locations, leaf first */
	uint32_t group;				 /* index into groups */
	int64_t value;
};

struct tree {
	struct arena arena;
	struct query_pool *pool; /* that the arena counts in, with so many bytes; may be NULL */
	size_t pooled_bytes;
	struct profile_type type;
	int64_t period;
	int64_t from_ns, to_ns;
	int64_t start_ns;		/* of the first report; 0 without any */
	int64_t report_ns;		/* the longest one that is no roll-up */
	int64_t duration_ns;		/* from there to the end of the last report; 0 for gauges */
	int64_t total;			/* of the stacks that are shown */
	int64_t filtered;		/* of those that filters hide */
	uint64_t reports, samples_rows; /* that were merged */
	bool has_times;			/* by_times (query.h), and times of samples are known */
	uint64_t names_pending;		/* frames whose symbols are still being read: ask again */
	uint64_t parts_unreadable;	/* left out; the caller adds the snapshot's */
	struct query_stats stats;	/* what it cost */
	struct tree_function *functions;
	uint32_t functions_count;
	struct tree_unresolved *unresolved; /* largest value first */
	uint32_t unresolved_count;
	int64_t unresolved_value; /* of the stacks with a frame of any of them */
	int64_t unresolved_leaf;  /* of those that end in one */
	struct tree_row *rows;	  /* instead of functions and nodes; NULL: those are there */
	uint32_t rows_count;
	struct tree_node *nodes;
	uint32_t nodes_count;
	/*
	 * Values of a node's children that were left out as too narrow (query_params.width_px), by
	 * node; NULL: all are there. With it: how many nodes there would be, or somewhat more.
	 */
	int64_t *cut;
	uint64_t nodes_untrimmed;
	uint32_t depth_max;
	struct tree_place *places;     /* by node, when asked for (query_params.places) */
	struct tree_base *base;	       /* by node; NULL: no diff */
	struct comparison *comparison; /* of a diff, when asked for (compare.h): the tree's */
	struct comparison *intervals;  /* of others, when asked for (likewise) */
	int64_t base_total, base_filtered, base_duration_ns;
	struct slice base_query;
	struct tree_line *lines;
	struct tree_location *locations;
	struct tree_stack *stacks;
	uint32_t *stack_locations;
	uint32_t lines_count, locations_count, stacks_count, stack_locations_count;
	struct slice *groups; /* "" or the group-by values joined with ',', "(none)" if absent */
	uint32_t groups_count;
	struct slice group_by;	    /* the label names joined, or "" */
	struct slice *group_names;  /* the label names one by one */
	struct slice *group_values; /* [group * group_names_count + name]; "" = absent */
	uint32_t group_names_count;
	struct slice query;   /* the selector, in one canonical spelling */
	struct slice filters; /* likewise; "" = none */
};

/*
 * Asserts that nodes are in pre-order with the right depths and functions. For trees with nodes;
 * called when a tree is complete.
 */
void tree_check(const struct tree *tree);

void tree_free(struct tree *tree); /* accepts NULL */

#endif
