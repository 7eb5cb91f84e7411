/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/series/range_cells.h"

#include <assert.h>

#define CELLS_PER_BUCKET 2

static bool may_do(const struct selection *selection)
{
	for (size_t v = 0; v < selection->segments_count; v++)
		if (selection->segments[v].by_rows)
			return false;
	return selection->type.delta;
}

/* From the first bucket to the last; returns how many there are. */
static size_t find_ends(const struct selection *selection, int64_t *ret_first, int64_t *ret_last)
{
	size_t count = 0;

	*ret_first = INT64_MAX;
	*ret_last = INT64_MIN;
	for (size_t v = 0; v < selection->segments_count; v++) {
		const struct select_segment *in = &selection->segments[v];

		count += in->buckets_count;
		for (size_t i = 0; i < in->buckets_count; i++) {
			int64_t at_ns = in->buckets[i].at_ns;

			*ret_first = at_ns < *ret_first ? at_ns : *ret_first;
			*ret_last = at_ns > *ret_last ? at_ns : *ret_last;
		}
	}
	return count;
}

static int make(const struct selection *selection, struct range_cells *cells, struct err *err)
{
	int64_t last_ns;
	size_t buckets = find_ends(selection, &cells->first_ns, &last_ns);

	if (!buckets || !cells->lines)
		return 0;
	cells->steps =
		((uint64_t)last_ns - (uint64_t)cells->first_ns) / (uint64_t)cells->step_ns + 1;
	if (cells->steps > CELLS_PER_BUCKET * buckets / cells->lines)
		return 0;
	cells->list = arena_new_array(&selection->work->arena, struct range_cell,
				      cells->lines * cells->steps);
	return cells->list ? 0 : work_over_budget(selection->work, err);
}

static int fill(const struct selection *selection, const struct select_segment *in,
		bool line_per_series, struct range_cells *cells, struct err *err)
{
	int64_t at_ns = cells->first_ns;
	size_t step = 0;

	assert(in->series);
	for (size_t i = 0; i < in->buckets_count; i++) {
		const struct select_bucket *bucket = &in->buckets[i];
		const struct select_series *series = &in->series[bucket->series];
		mean_wide value = bucket->total;
		struct range_cell *cell;
		int rc = work_tick(selection->work, 1, err);

		if (rc)
			return rc;
		if (series->id == SELECT_NONE)
			continue;
		/* Mostly the next one: no division for each. */
		if ((uint64_t)bucket->at_ns - (uint64_t)at_ns == (uint64_t)cells->step_ns)
			step++;
		else
			step = ((uint64_t)bucket->at_ns - (uint64_t)cells->first_ns) /
			       (uint64_t)cells->step_ns;
		at_ns = bucket->at_ns;
		cell = &cells->list[step +
				    cells->steps * (line_per_series ? series->id : series->group)];
		if (selection->by_period)
			value *= selection->series[series->id].period;
		cell->value = mean_add(cell->value, value);
		cell->reports += bucket->reports;
		cell->is_there = true;
	}
	return 0;
}

int range_cells_collect(struct selection *selection, bool line_per_series, int64_t step_ns,
			struct range_cells *ret, struct err *err)
{
	int rc = 0;

	*ret = (struct range_cells){
		.lines = line_per_series ? selection->series_count : selection->groups.count,
		.step_ns = step_ns,
	};
	if (may_do(selection))
		rc = make(selection, ret, err);
	for (size_t v = 0; !rc && ret->list && v < selection->segments_count; v++)
		rc = fill(selection, &selection->segments[v], line_per_series, ret, err);
	return rc;
}
