/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_plan - which levels of a partition answer a query: the coarsest that are exact inside
 * the range, finer ones at the edges, so that every report counts exactly once.
 *
 * A roll-up stands for the reports of its part that start within its ten minutes, hour or day
 * (UTC), so a level is exact for ranges, and for steps, that are made of whole ones; where the
 * range reaches beyond all reports of the partition its edge does not matter. Levels of the whole
 * partition (*_ALL) are for queries that cannot tell its series apart. Pure functions.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_PLAN_H
#define FIRN_SERVER_PERSIST_STORE_PLAN_H

#include "model/segment.h"
#include "server/persist/store.h"

#define STORE_PLAN_PIECES_MAX 4 /* days; around them hours, ten minutes and raw reports */

struct store_plan_partition {
	int64_t start_min_ns, start_max_ns; /* of its reports; inclusive */
	uint32_t levels;		    /* 1 << enum segment_level for each that there is */
	bool raw_only; /* a name of the query is of its rows, or a tombstone touches it */
	bool alike;    /* store_plan_alike */
};

/*
 * Reports of `level` that start in [from, to), but for the hole, which others answer for: both
 * edges of a range are one piece, so that a block that holds reports of both is read once.
 */
struct store_plan_piece {
	enum segment_level level;
	int64_t from_ns, to_ns;
	struct segment_hole hole;
};

/* Fills `pieces` and returns how many; 0 = nothing of the partition is in range. */
size_t store_plan(const struct store_query *query, const struct store_plan_partition *partition,
		  struct store_plan_piece pieces[static STORE_PLAN_PIECES_MAX]);

/* True if the query names a label that is among those. */
bool store_plan_names(const struct store_query *query, const struct slice *names,
		      size_t names_count);

/*
 * True if all series of the view have the same value of each label that the query names, so
 * that it cannot tell them apart.
 */
bool store_plan_alike(const struct store_query *query, const struct tables_view *series);

#endif
