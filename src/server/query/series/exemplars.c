/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/series/exemplars.h"

#include <assert.h>

#include "base/mem.h"
#include "server/query/select/select.h"

struct finding {
	struct selection *selection;
	struct exemplars *found;
	size_t capacity;
	size_t *last; /* by series: index + 1 of its last one */
	int64_t step_ns;
	struct err *err;
};

static int64_t step_of(int64_t at_ns, int64_t step_ns)
{
	return at_ns / step_ns - (at_ns % step_ns < 0);
}

static int note(struct finding *finding, uint32_t series, int64_t start_ns, int64_t value)
{
	struct exemplars *found = finding->found;
	struct exemplar *last =
		finding->last[series] ? &found->list[finding->last[series] - 1] : NULL;

	assert(series < finding->selection->series_count);
	if (last &&
	    step_of(last->start_ns, finding->step_ns) == step_of(start_ns, finding->step_ns)) {
		if (value > last->value)
			*last = (struct exemplar){ series, start_ns, value };
		return 0;
	}
	if (!WORK_GROW(&found->arena, found->list, found->count, finding->capacity))
		return work_over_budget(finding->selection->work, finding->err);
	found->list[found->count++] = (struct exemplar){ series, start_ns, value };
	finding->last[series] = found->count;
	return 0;
}

static int note_block(struct finding *finding, struct select_segment *in, uint32_t number)
{
	struct selection *selection = finding->selection;
	struct segment_block block;
	int rc = work_read(selection->work, in->segment, number, SEGMENT_HEADERS, &block,
			   finding->err);

	assert(number < in->segment->blocks_count);
	for (uint32_t i = 0; !rc && i < block.reports_count; i++) {
		const struct segment_report *report = &block.reports[i];
		const struct select_series *series = &in->series[report->series];
		int64_t value;

		if (!select_takes(selection, in, report) || !select_whole(series))
			continue;
		value = block.totals[report->total_first + series->column];
		if (selection->by_period)
			value = work_multiply(value, selection->series[series->id].period);
		rc = note(finding, series->id, report->start_ns, value);
		if (!rc)
			rc = work_tick(selection->work, 1, finding->err);
	}
	return rc;
}

static bool label_series(const struct select_totals *from, struct arena *arena,
			 struct query_series *ret)
{
	const struct tables_view *view = from->view;
	const struct label_set *set = &view->label_sets[view->series[from->series].label_set];

	ret->labels = arena_new_array(arena, struct query_label, set->label_count);
	for (uint32_t i = 0; ret->labels && i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];
		struct slice name = tables_text(view, label->name);
		struct slice value = tables_text(view, label->value);

		if (value.len && !slice_starts_with(name, SLICE_LITERAL("__")))
			ret->labels[ret->labels_count++] =
				(struct query_label){ arena_copy(arena, name),
						      arena_copy(arena, value) };
	}
	return ret->labels || !set->label_count;
}

static int label_all(struct finding *finding)
{
	const struct selection *selection = finding->selection;
	struct exemplars *found = finding->found;

	found->series =
		arena_new_array(&found->arena, struct query_series, selection->series_count);
	if (!found->series)
		return work_over_budget(selection->work, finding->err);
	for (size_t i = 0; i < selection->series_count; i++)
		if (!label_series(&selection->series[i], &found->arena,
				  &found->series[found->series_count++]))
			return work_over_budget(selection->work, finding->err);
	return 0;
}

static int find(struct finding *finding)
{
	struct selection *selection = finding->selection;
	int rc = label_all(finding);

	finding->last = arena_new_array(&selection->work->arena, size_t, selection->series_count);
	if (!finding->last)
		return work_over_budget(selection->work, finding->err);
	for (size_t v = 0; !rc && v < selection->segments_count; v++) {
		struct select_segment *in = &selection->segments[v];

		for (size_t i = 0; !rc && i < in->blocks_count; i++)
			rc = note_block(finding, in, in->blocks[i]);
	}
	return rc ? rc : work_check(selection->work, finding->err);
}

int exemplars_find(const struct query_source *source, const struct query_range_params *params,
		   struct exemplars *ret, struct err *err)
{
	struct query_params base = params->base;
	struct selection selection;
	struct exemplars found = { 0 };
	struct finding finding = {
		.selection = &selection, .found = &found, .step_ns = params->step_ns, .err = err
	};
	struct work work;
	int rc;

	base.group_by_count = 0;
	work_begin(&work, &base.limits);
	arena_init(&found.arena, work.limit_bytes);
	rc = select_make(&selection, &work, source, &base, (struct select_use){ 0 }, err);
	if (!rc)
		rc = find(&finding);
	if (!rc && found.arena.over_budget)
		rc = work_over_budget(&work, err);
	work_end(&work);
	if (rc)
		exemplars_free(&found);
	else
		*ret = found;
	return rc;
}

void exemplars_free(struct exemplars *exemplars)
{
	arena_free(&exemplars->arena);
	*exemplars = (struct exemplars){ 0 };
}
