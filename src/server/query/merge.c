/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/merge.h"

#include "base/mem.h"

struct merging {
	struct selection *selection;
	struct merge *merge;
	struct accumulate_sums sums; /* of all views, stacks as in the merged trie */
	size_t sums_capacity;
};

static bool add_sum(struct merging *merging, const struct accumulate_sum *sum)
{
	struct arena *arena = &merging->selection->work->arena;

	if (!WORK_GROW(arena, merging->sums.list, merging->sums.count, merging->sums_capacity))
		return false;
	merging->sums.list[merging->sums.count++] = *sum;
	return true;
}

static int copy_sums(struct merging *merging, const struct tables_view *view,
		     const struct accumulate_sums *sums, struct err *err)
{
	struct work *work = merging->selection->work;
	struct tables_copy copy;
	int rc = 0;

	tables_copy_begin(&copy, merging->merge->own, view);
	for (size_t i = 0; !rc && i < sums->count; i++) {
		struct accumulate_sum sum = sums->list[i];

		sum.stack = tables_copy_node(&copy, sum.stack);
		if (sum.stack == TABLES_FULL || !add_sum(merging, &sum))
			rc = work_over_budget(work, err);
		if (i % WORK_TICKS_PER_CHECK == 0)
			work->other_bytes = tables_bytes(merging->merge->own);
		if (!rc)
			rc = work_tick(work, 16, err);
	}
	tables_copy_end(&copy);
	return rc;
}

/* Values of equal (group, stack) are added up through one dense counter, a group at a time. */
static int add_up(struct merging *merging, const uint32_t *order, struct err *err)
{
	const struct selection *selection = merging->selection;
	struct merge *merge = merging->merge;
	struct arena *arena = &selection->work->arena;
	mean_wide *counters = arena_new_array(arena, mean_wide, merge->view.nodes_count);
	const struct accumulate_sum *sums = merging->sums.list;
	size_t count = merging->sums.count;

	merge->values = arena_new_array(arena, struct merge_value, count);
	if (!counters || !merge->values)
		return work_over_budget(selection->work, err);
	for (size_t first = 0, next; first < count; first = next) {
		uint32_t group = sums[order[first]].group;

		for (next = first; next < count && sums[order[next]].group == group; next++) {
			mean_wide *counter = &counters[sums[order[next]].stack];

			*counter = mean_add(*counter, sums[order[next]].value);
		}
		for (size_t i = first; i < next; i++) {
			uint32_t stack = sums[order[i]].stack;
			int64_t value = mean_round(counters[stack], selection->denominator);

			counters[stack] = 0;
			if (value)
				merge->values[merge->values_count++] =
					(struct merge_value){ stack, group, value };
		}
	}
	return 0;
}

/* The sums' indexes ordered by group, stable: a counting sort. */
static uint32_t *order_by_group(const struct merging *merging)
{
	struct arena *arena = &merging->selection->work->arena;
	size_t groups_count = merging->selection->groups.count;
	uint32_t *starts = arena_new_array(arena, uint32_t, groups_count + 1);
	uint32_t *order = arena_new_array(arena, uint32_t, merging->sums.count);

	if (!starts || !order)
		return NULL;
	for (size_t i = 0; i < merging->sums.count; i++)
		starts[merging->sums.list[i].group + 1]++;
	for (size_t i = 1; i <= groups_count; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < merging->sums.count; i++)
		order[starts[merging->sums.list[i].group]++] = (uint32_t)i;
	return order;
}

static size_t views_with_reports(const struct selection *selection, struct select_view **ret_last)
{
	size_t count = 0;

	for (size_t i = 0; i < selection->views_count; i++) {
		if (!selection->views[i].reports_count)
			continue;
		*ret_last = &selection->views[i];
		count++;
	}
	return count;
}

static int merge_several(struct merging *merging, struct err *err)
{
	struct selection *selection = merging->selection;
	struct merge *merge = merging->merge;
	int rc = 0;

	merge->own = mem_new(struct tables);
	tables_init(merge->own);
	for (size_t i = 0; !rc && i < selection->views_count; i++) {
		struct accumulate_sums sums = { 0 };

		if (!selection->views[i].reports_count)
			continue;
		rc = accumulate_view(selection, &selection->views[i], &sums, err);
		if (!rc)
			rc = copy_sums(merging, selection->views[i].view, &sums, err);
		merge->rows += sums.rows;
	}
	merge->view = tables_view_of(merge->own);
	return rc;
}

int merge_views(struct selection *selection, struct merge *ret, struct err *err)
{
	struct merging merging = { .selection = selection, .merge = ret };
	struct select_view *only = NULL;
	size_t views_count = views_with_reports(selection, &only);
	uint32_t *order;
	int rc;

	*ret = (struct merge){ 0 };
	if (views_count == 1) {
		rc = accumulate_view(selection, only, &merging.sums, err);
		ret->view = *only->view;
		ret->rows = merging.sums.rows;
	} else {
		rc = merge_several(&merging, err);
	}
	if (rc)
		return rc;
	if (merging.sums.count > UINT32_MAX)
		return work_over_budget(selection->work, err);
	order = order_by_group(&merging);
	if (!order)
		return work_over_budget(selection->work, err);
	return add_up(&merging, order, err);
}

void merge_free(struct merge *merge)
{
	if (merge->own) {
		tables_free(merge->own);
		free(merge->own);
	}
	*merge = (struct merge){ 0 };
}
