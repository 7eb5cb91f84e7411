/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series_part - divides the series of a query evenly into parts that can be queried one by one
 * (query_params.part), to measure how series differ from each other.
 *
 * The labels of a series decide its part, so it is in the same part on both sides of a diff. Pure
 * functions over the caller's arrays; any thread.
 */
#ifndef FIRN_SERVER_QUERY_SERIES_PART_H
#define FIRN_SERVER_QUERY_SERIES_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct query_series;
struct tables_view;

struct series_part {
	const uint64_t *ids; /* of all series, sorted, distinct; none: by the id itself */
	size_t ids_count;
	uint32_t parts, part;
	bool only; /* instead: those of `ids` alone */
};

/* Labels as answers show them: without names that begin with "__". */
uint64_t series_part_id(const struct query_series *series);
bool series_part_has(const struct series_part *part, const struct tables_view *view,
		     uint32_t label_set);

#endif
