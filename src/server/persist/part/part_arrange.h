/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_arrange - makes the dictionaries of partitions from larger tables, in the order of parts.
 *
 *   series   by labels
 *   nodes    depth-first, of siblings the one with more rows below it first
 *
 * Frames, strings and label sets come in the order of their first use; unused ones are left out.
 * One arranger serves all partitions of the same tables: its cost grows with what a partition uses,
 * not with the tables. One thread.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_ARRANGE_H
#define FIRN_SERVER_PERSIST_PART_PART_ARRANGE_H

#include "model/tables.h"

struct part_arranger;

/* The used part of the tables, arranged; valid until the arranger is used again. */
struct part_arrangement {
	struct tables_view view; /* without reports */
	const uint64_t *rows_of_node;
	/* New ids by old ones; of those used only. */
	const uint32_t *series, *nodes, *label_sets;
};

/* The contents of `from` are checked ones. Borrowed. */
struct part_arranger *part_arranger_new(const struct tables_view *from);
void part_arranger_free(struct part_arranger *arranger); /* accepts NULL */

/* Ids of `from`; any number of times. All series are of one group. */
void part_arranger_use_series(struct part_arranger *arranger, uint32_t series);
void part_arranger_use_stack(struct part_arranger *arranger, uint32_t node, uint64_t rows);
void part_arranger_use_label_set(struct part_arranger *arranger, uint32_t label_set);

/* Arranges what was used since the last call. */
void part_arranger_finish(struct part_arranger *arranger, struct part_arrangement *ret);

#endif
