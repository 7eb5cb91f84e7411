/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_cells - the sums of a time series in an array with a cell for each line and step, used if
 * cells are not many more than the buckets to be summed: then nothing has to be sorted.
 */
#ifndef FIRN_SERVER_QUERY_SERIES_RANGE_CELLS_H
#define FIRN_SERVER_QUERY_SERIES_RANGE_CELLS_H

#include "server/query/select/select.h"

struct range_cell {
	uint64_t reports; /* that start in that step */
	mean_wide value;
	bool is_there; /* something is in that step */
};

struct range_cells {
	struct range_cell *list; /* line by line; in the query's work memory */
	size_t lines, steps;
	int64_t first_ns, step_ns;
};

/*
 * ret->list is NULL, without an error, if cells cannot be used: they are too many, rows may add
 * lines, or means of gauges need reports by series. A line is a series, or else a group.
 */
int range_cells_collect(struct selection *selection, bool line_per_series, int64_t step_ns,
			struct range_cells *ret, struct err *err);

/* When a step begins. */
static inline int64_t range_cells_at(const struct range_cells *cells, size_t step)
{
	return (int64_t)((uint64_t)cells->first_ns + step * (uint64_t)cells->step_ns);
}

#endif
