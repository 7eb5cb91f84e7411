/* SPDX-License-Identifier: Apache-2.0 */
/* table_int - what table.c and table_indexed.c share: rows, and what decides which are needed. */
#ifndef FIRN_SERVER_QUERY_SHAPE_TABLE_INT_H
#define FIRN_SERVER_QUERY_SHAPE_TABLE_INT_H

#include "server/query/index/indexed.h"
#include "server/query/sum/preorder.h"
#include "server/query/name/row_key.h"
#include "server/query/shape/table.h"

#define NO_ROW UINT32_MAX

/* A sum in pre-order: the item is on the path until the place `until`. */
struct sum {
	uint64_t until;
	int64_t value;
};

/* A function, or an address, which gets its name when the row is shown. */
struct table_row {
	struct row_key key; /* the name may be an index's */
	uint64_t hash;
	int64_t flat;
	int64_t least;	      /* that flat will be at least */
	bool has_inlined;     /* some line of it was inlined */
	bool called, inlined; /* as in struct tree_row */
};

/* The callers of a function that is inlined somewhere. */
struct edge {
	uint32_t caller, callee;
	uint64_t until;
	bool inlined; /* wherever it occurs */
};

/* The row of a frame that is one line, not inlined. */
struct table_frame {
	uint32_t row;  /* + 1; 0 = not known yet; or TABLE_PLACE_LINES, TABLE_PLACE_LEFT_OUT */
	uint32_t item; /* why it has no name; 0: it has */
};

/*
 * There can be hundreds of thousands of addresses, of which few are shown. So their flat values are
 * first summed in counters by hash: an upper bound for each row that shares the counter. Values of
 * single frames are lower bounds. A row whose upper bound is below the lower bound of the last row
 * shown is not made.
 */
struct bounds {
	unsigned bits;	/* of hashes, the highest: rows in their order meet counters in theirs */
	int64_t *most;	/* by these */
	int64_t *flats; /* by frame of the trie */
	size_t flats_capacity;
	int64_t *largest; /* a heap: the values of frames, as many as rows are to be shown */
	size_t largest_count;
	struct candidate {
		struct row_key key;
		uint64_t hash;
		int64_t flat;
	} * candidates; /* those that were among the largest */
	size_t candidates_count, candidates_capacity;
	int64_t least; /* that a row needs */
};

/*
 * Nodes are visited in pre-order, whatever their order in the trie, which shows whether a function
 * is on the path already (recursion). Places are numbered across all tries.
 */
struct table {
	int64_t unnamed_flat; /* of all rows without a name of their own */
	struct work *work;
	struct name_table *names;
	const struct merge_trie *trie;
	struct table_row *rows;
	size_t rows_count, rows_capacity;
	struct sum *cums; /* by row */
	size_t cums_capacity;
	struct idmap rows_map; /* by name, or by binary and address */
	uint32_t *row_of;      /* by function: its row + 1; 0 = not known yet */
	size_t row_of_capacity;
	struct sum *items; /* by reason why there is no name; 0 is for all together */
	size_t items_capacity;
	struct edge *edges;
	size_t edges_count, edges_capacity;
	struct idmap edges_map;
	bool any_inlined, with_edges;
	struct table_frame *places; /* by frame of the trie */
	size_t places_capacity;
	struct preorder preorder; /* of the trie; marks are the last row on the way to each node */
	uint64_t begin;		  /* place of the trie's root */
	struct bounds bounds;
	struct row_place place;
	int64_t total;
	const struct indexed_sums *indexed;
	size_t indexed_count;
	uint32_t *shown; /* rows that can be among those that are wanted */
	size_t shown_count;
};

/* Finds or adds; NO_ROW when over budget. */
uint32_t table_find_row(struct table *table, const struct row_key *key, uint64_t hash);

/* That row's counter. */
static inline int64_t *bounds_counter(const struct bounds *bounds, uint64_t hash)
{
	return &bounds->most[hash >> (64 - bounds->bits)];
}

/* A lower bound of what a row has: it may be among the largest. False when over budget. */
bool bounds_note(struct table *table, const struct row_key *key, uint64_t hash, int64_t flat);

/* Adds the value of a node at `place` unless what it is added to is on the path already. */
static inline void table_add_once(struct sum *sum, uint64_t place, uint64_t end, int64_t value)
{
	if (place < sum->until)
		return;
	sum->until = end;
	sum->value = work_add(sum->value, value);
}

/* The counter of a reason; 0: of all. NULL when over budget. */
struct sum *table_item(struct table *table, uint32_t item);

/* A node's row, called from another. False when over budget. */
bool table_meet_edge(struct table *table, uint32_t caller, uint32_t row, bool inlined,
		     uint64_t place, uint64_t end);

/*
 * For the indexed segments, to be called in this order: upper bounds of rows, and lower bounds of
 * some; the flat values of rows that may be shown; for rows that are shown, cum and, with edges,
 * their callers; reasons why names are missing, and the total.
 */
int table_indexed_bounds(struct table *table, struct err *err);
int table_indexed_refine(struct table *table, struct err *err);
int table_indexed_flats(struct table *table, struct err *err);
int table_indexed_cums(struct table *table, struct err *err);
int table_indexed_edges(struct table *table, struct err *err);
int table_indexed_reasons(struct table *table, struct err *err);

#endif
