/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/series/range_times.h"

#include <assert.h>

#include "server/query/select/times.h"

/* NULL when over budget. */
static struct range_times_step *line_at(struct range_times *times, uint32_t line)
{
	struct arena *arena = &times->selection->work->arena;

	while (times->lines_count <= line) {
		if (!WORK_GROW(arena, times->lines, times->lines_count, times->lines_capacity))
			return NULL;
		times->lines[times->lines_count++] = NULL;
	}
	if (!times->lines[line])
		times->lines[line] =
			arena_new_array(arena, struct range_times_step, times->steps_count);
	return times->lines[line];
}

static int add(struct range_times *times, uint32_t line, int64_t at_ns, int64_t value)
{
	struct range_times_step *step = line_at(times, line);

	if (!step)
		return work_over_budget(times->selection->work, times->err);
	step += (at_ns - times->first_ns) / times->step_ns;
	step->value = mean_add(step->value, value);
	step->reports += step->last_report != times->reports;
	step->last_report = times->reports;
	return 0;
}

static int add_row(struct range_times *times, struct select_segment *in,
		   const struct segment_report *report, const struct times_row *row)
{
	const struct selection *selection = times->selection;
	const struct select_series *series = &in->series[report->series];
	uint32_t group = series->group;
	int rc = 0;

	assert(report->series < in->view->series_count);
	if (!select_whole(series))
		rc = select_row(times->selection, in, series, row->label_set, &group, times->err);
	if (rc || group == SELECT_NONE)
		return rc;
	for (uint32_t i = 0; !rc && i < times_parts(row); i++) {
		int64_t at_ns, value = times_part(row, i, &at_ns);

		if (selection->by_period)
			value = work_multiply(value, selection->series[series->id].period);
		if (times_takes(selection->params, at_ns))
			rc = add(times, times->line_per_series ? series->id : group, at_ns, value);
	}
	return rc ? rc : work_tick(selection->work, times_parts(row), times->err);
}

static int add_block(struct range_times *times, struct select_segment *in, uint32_t number)
{
	enum segment_want want = in->segment->has_moments ? SEGMENT_MOMENTS : SEGMENT_ROWS;
	struct segment_block block;
	int rc = work_read(times->selection->work, in->segment, number, want, &block, times->err);

	assert(number < in->segment->blocks_count);
	for (uint32_t i = 0; !rc && i < block.reports_count; i++) {
		const struct segment_report *report = &block.reports[i];
		struct times rows;
		struct times_row row;

		if (!select_takes(times->selection, in, report))
			continue;
		times->reports++;
		times_begin(&rows, in, &block, report);
		while (!rc && times_next(&rows, &row))
			rc = add_row(times, in, report, &row);
	}
	return rc;
}

int range_times_collect(struct range_times *times)
{
	struct selection *selection = times->selection;
	int rc = 0;

	assert(times->selection->by_times);
	for (size_t v = 0; v < selection->segments_count; v++) {
		struct select_segment *in = &selection->segments[v];

		for (size_t i = 0; !rc && i < in->blocks_count; i++)
			rc = add_block(times, in, in->blocks[i]);
	}
	return rc;
}
