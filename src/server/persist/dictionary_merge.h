/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dictionary_merge - the dictionaries of several views as one, in the order that a partition wants.
 *
 *   series      sorted by their labels (dictionary_label_set_order)
 *   nodes       depth-first, of siblings the one with more rows at or below it first
 *   the rest    in the order of first use
 *
 * Exact: things are equal when all of what they say is equal, and each is there once. What no row
 * and no series uses is left out. Since series are sorted in the views too, maps of series ascend:
 * reports of several parts in (series, start) order merge as streams.
 *
 * Memory: the result, hash maps of it, and the maps; nothing of reports or rows. Pure,
 * safe from any thread. Errors: ERR_LIMIT (more than tables can number), ERR_INVALID (views of
 * different groups).
 */
#ifndef FIRN_SERVER_PERSIST_DICTIONARY_MERGE_H
#define FIRN_SERVER_PERSIST_DICTIONARY_MERGE_H

#include "base/err.h"
#include "model/tables.h"

struct dictionary_input {
	const struct tables_view *view; /* with frames and nodes; borrowed */
	const uint64_t *rows_of_node;	/* by node: rows that have this stack */
	const uint8_t *series_used;	/* by series */
	const uint8_t *label_sets_used; /* by label set: of rows (sample labels); NULL: none */
	/* Made here: ids in the result, TABLES_FULL for what was left out. */
	uint32_t *series, *nodes, *label_sets;
};

struct dictionary {
	struct tables_view view; /* no reports, no rows */
	uint64_t *rows_of_node;
	/* What the view points into. */
	struct tables gathered;
	struct node *nodes;
	struct frame *frames;
	struct series *series;
};

/* On failure the inputs' maps are not made. */
int dictionary_merge(struct dictionary_input *inputs, size_t inputs_count, struct dictionary *ret,
		     struct err *err);
void dictionary_input_free_maps(struct dictionary_input *input);
void dictionary_free(struct dictionary *dictionary);

/* By name, then value, label by label; a set that is the beginning of the other comes first. */
int dictionary_label_set_order(const struct tables_view *view, uint32_t left, uint32_t right);

#endif
