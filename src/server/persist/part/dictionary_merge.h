/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dictionary_merge - the dictionaries of several views as one, in the order that a partition wants.
 *
 *   series      sorted by their labels (dictionary_label_set_order)
 *   nodes       depth-first, of siblings the one with more rows at or below it first
 *   the rest    in the order of first use
 *
 * Exact: entries are equal if their content is, and each is there once. Entries that no row and no
 * series uses are left out. Since series are sorted in the views too, maps of series ascend, so
 * reports of several parts in (series, start) order merge as streams.
 *
 * Views are added one after the other and not needed afterwards: of each, the caller keeps maps
 * from its ids to provisional ones, which dictionary_map_... turn into ids of the result.
 *
 * Memory: the result with hash maps of it; nothing of reports or rows. Safe from any thread, each
 * merge by one. Errors: ERR_LIMIT (more than tables can number), ERR_INVALID (views of different
 * groups); after one, only dictionary_merge_free.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DICTIONARY_MERGE_H
#define FIRN_SERVER_PERSIST_PART_DICTIONARY_MERGE_H

#include "base/err.h"
#include "model/tables.h"

struct dictionary_input {
	const struct tables_view *view; /* with frames and nodes; borrowed */
	const uint64_t *rows_of_node;	/* by node: rows that have this stack */
	const uint8_t *series_used;	/* by series */
	const uint8_t *label_sets_used; /* by label set: of rows (sample labels); NULL: none */
	/* Made by dictionary_merge_add; TABLES_FULL for what is left out. Label sets are final. */
	uint32_t *series, *nodes, *label_sets;
};
void dictionary_input_free_maps(struct dictionary_input *input);

struct dictionary {
	struct tables_view view; /* no reports, no rows */
	uint64_t *rows_of_node;
	/* Indexed by provisional id. */
	uint32_t *node_numbers, *series_numbers;
	/* What the view points into. */
	struct tables gathered;
	struct node *nodes;
	struct frame *frames;
	struct series *series;
};
void dictionary_free(struct dictionary *dictionary);

struct dictionary_merge;
struct dictionary_merge *dictionary_merge_new(void);
void dictionary_merge_free(struct dictionary_merge *merge); /* accepts NULL */
MUST_USE int dictionary_merge_add(struct dictionary_merge *merge, struct dictionary_input *input,
				  struct err *err);

/* Memory that it takes now; finishing it takes as much again, for a while. */
size_t dictionary_merge_bytes(const struct dictionary_merge *merge);

/* Ends and frees the merge. */
void dictionary_merge_finish(struct dictionary_merge *merge, struct dictionary *ret);

/* Maps to provisional ids become maps to those of the result. */
void dictionary_map_nodes(const struct dictionary *dictionary, uint32_t *map, uint32_t count);
void dictionary_map_series(const struct dictionary *dictionary, uint32_t *map, uint32_t count);

/* Orders by name, then value, label by label; a prefix of another set comes first. */
int dictionary_label_set_order(const struct tables_view *view, uint32_t left, uint32_t right);

#endif
