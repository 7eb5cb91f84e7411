/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/merge.h"

#include <stdlib.h>

#include "base/mem.h"
#include "server/query/team.h"

/*
 * Roughly in ns; not by the number of CPUs, so that answers do not depend on it. Segments of one
 * partition key stay in one unit as long as that does not make it a giant.
 */
#define UNIT_COST ((uint64_t)4 << 20)
#define UNIT_COST_MAX (64 * UNIT_COST)
#define ROW_COST 4u
#define NODE_COST 50u
#define SEGMENT_COST 20000u
#define TOGETHER_ROWS ((uint64_t)2 << 20) /* of a segment that is worth several threads */

/* Sums over a trie of their own, or over that of a segment. */
struct heap {
	struct trie trie;
	const struct tables_view *view; /* the segment's; NULL: see trie */
	struct accumulate_sum *sums;
	size_t sums_count, sums_capacity;
	uint64_t rows;
	bool begun;
};

/* Segments first .. end - 1 of the order. */
struct unit {
	size_t first, end;
	struct heap heap;
};

struct merging {
	struct selection *selection;
	struct select_segment **order; /* with reports; kin behind kin */
	size_t order_count;
	struct unit *units;
	size_t units_count;
	uint64_t cost;
	bool as_one;
};

static size_t heap_bytes(const struct heap *heap)
{
	return trie_bytes(&heap->trie) + heap->sums_capacity * sizeof(*heap->sums);
}

/* Counted by whichever thread: what one adds and another takes off comes out even. */
static void begin_heap(struct work *work, struct heap *heap, const struct tables_view *view)
{
	if (!view)
		trie_init(&heap->trie);
	heap->view = view;
	heap->begun = true;
	work->other_bytes += heap_bytes(heap);
}

static void free_heap(struct work *work, struct heap *heap)
{
	if (heap->begun) {
		work->other_bytes -= heap_bytes(heap);
		trie_free(&heap->trie);
	}
	free(heap->sums);
	*heap = (struct heap){ 0 };
}

/* Adds sums of another trie; their stacks are renamed. */
static int add_sums(struct heap *heap, struct work *work, const struct tables_view *view,
		    struct accumulate_sum *sums, size_t count, struct err *err)
{
	int rc = heap->view ? 0 : trie_add(&heap->trie, work, view, sums, count, err);

	if (rc || !count)
		return rc;
	while (heap->sums_capacity - heap->sums_count < count) {
		size_t capacity = 2 * heap->sums_capacity + 1024;

		heap->sums = mem_realloc(heap->sums, capacity, sizeof(*heap->sums));
		work->other_bytes += (capacity - heap->sums_capacity) * sizeof(*heap->sums);
		heap->sums_capacity = capacity;
	}
	memcpy(heap->sums + heap->sums_count, sums, count * sizeof(*sums));
	heap->sums_count += count;
	return work_check(work, err);
}

/* The sums' indexes ordered by group, stable: a counting sort. */
static uint32_t *order_by_group(const struct accumulate_sum *sums, size_t count,
				size_t groups_count, struct arena *arena)
{
	uint32_t *starts = arena_new_array(arena, uint32_t, groups_count + 1);
	uint32_t *order = arena_new_array(arena, uint32_t, count);

	if (!starts || !order)
		return NULL;
	for (size_t i = 0; i < count; i++)
		starts[sums[i].group + 1]++;
	for (size_t i = 1; i <= groups_count; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < count; i++)
		order[starts[sums[i].group]++] = (uint32_t)i;
	return order;
}

/*
 * Values of equal (group, stack) are added up through one dense counter, a group at a time; the
 * first of each takes the sum. `sums` is replaced by a list that is ordered by group.
 */
static int add_up(const struct selection *selection, struct arena *arena, uint32_t nodes_count,
		  struct accumulate_sum **sums, size_t *sums_count, struct err *err)
{
	const struct accumulate_sum *list = *sums;
	size_t count = *sums_count, kept = 0;
	mean_wide *counters = arena_new_array(arena, mean_wide, nodes_count);
	struct accumulate_sum *added = arena_new_array(arena, struct accumulate_sum, count);
	uint32_t *order = NULL;

	if (counters && added && count <= UINT32_MAX)
		order = order_by_group(list, count, selection->groups.count, arena);
	if (!order)
		return work_over_budget(selection->work, err);
	for (size_t first = 0, next; first < count; first = next) {
		uint32_t group = list[order[first]].group;

		for (next = first; next < count && list[order[next]].group == group; next++) {
			mean_wide *counter = &counters[list[order[next]].stack];

			*counter = mean_add(*counter, list[order[next]].value);
		}
		for (size_t i = first; i < next; i++) {
			uint32_t stack = list[order[i]].stack;

			if (counters[stack])
				added[kept++] =
					(struct accumulate_sum){ counters[stack], stack, group };
			counters[stack] = 0;
		}
	}
	*sums = added;
	*sums_count = kept;
	return 0;
}

/* The sums of a heap that several tries went into, each stack once. */
static int fold_heap(const struct selection *selection, struct work *work, struct heap *heap,
		     struct err *err)
{
	struct accumulate_sum *sums = heap->sums;
	size_t count = heap->sums_count;
	struct arena scratch;
	int rc;

	arena_init(&scratch, work->limit_bytes);
	rc = add_up(selection, &scratch, (uint32_t)heap->trie.nodes.count, &sums, &count, err);
	work->other_bytes += scratch.used_bytes;
	if (!rc)
		rc = work_check(work, err);
	work->other_bytes -= scratch.used_bytes;
	if (!rc) {
		if (count)
			memcpy(heap->sums, sums, count * sizeof(*sums));
		heap->sums_count = count;
	}
	arena_free(&scratch);
	return rc;
}

static int add_segment(struct merging *merging, struct work *work, struct heap *heap,
		       struct select_segment *in, bool together, struct err *err)
{
	struct accumulate_sums sums = { 0 };
	struct arena scratch;
	int rc;

	arena_init(&scratch, work->limit_bytes);
	rc = accumulate_segment(merging->selection, work, in, together, &scratch, &sums, err);
	if (!rc) {
		work->other_bytes += scratch.used_bytes;
		rc = add_sums(heap, work, in->view, sums.list, sums.count, err);
		work->other_bytes -= scratch.used_bytes;
	}
	heap->rows += sums.rows;
	work->stats.nodes_merged += in->view->nodes_count;
	arena_free(&scratch);
	return work_spare(in->segment, rc);
}

static int merge_unit(struct merging *merging, struct work *work, struct unit *unit, bool together,
		      struct err *err)
{
	bool alone =
		unit->end - unit->first == 1 && (!merging->as_one || merging->units_count == 1);
	int rc = 0;

	begin_heap(work, &unit->heap, alone ? merging->order[unit->first]->view : NULL);
	for (size_t i = unit->first; !rc && i < unit->end; i++)
		rc = add_segment(merging, work, &unit->heap, merging->order[i], together, err);
	return rc || alone ? rc : fold_heap(merging->selection, work, &unit->heap, err);
}

/* A step for a team. */
static int merge_one_unit(void *context, struct work *work, size_t index, struct err *err)
{
	struct merging *merging = context;
	struct unit *unit = &merging->units[index];

	return unit->heap.begun ? 0 : merge_unit(merging, work, unit, false, err);
}

static int kin_order(const void *left, const void *right)
{
	const struct select_segment *a = *(struct select_segment *const *)left;
	const struct select_segment *b = *(struct select_segment *const *)right;

	if (a->segment->kin != b->segment->kin)
		return a->segment->kin < b->segment->kin ? -1 : 1;
	return (a > b) - (a < b);
}

static int order_segments(struct merging *merging, struct err *err)
{
	struct selection *selection = merging->selection;
	struct arena *arena = &selection->work->arena;

	merging->order = arena_new_array(arena, struct select_segment *, selection->segments_count);
	merging->units = arena_new_array(arena, struct unit, selection->segments_count);
	if (!merging->order || !merging->units)
		return work_over_budget(selection->work, err);
	for (size_t i = 0; i < selection->segments_count; i++)
		if (selection->segments[i].blocks_count)
			merging->order[merging->order_count++] = &selection->segments[i];
	if (merging->order_count)
		qsort(merging->order, merging->order_count, sizeof(struct select_segment *),
		      kin_order);
	return 0;
}

static bool is_large(const struct select_segment *in)
{
	return in->rows_count >= TOGETHER_ROWS && !in->by_rows;
}

static uint64_t cost_of(const struct select_segment *in)
{
	return in->rows_count * ROW_COST + (uint64_t)in->segment->slots_count * NODE_COST +
	       SEGMENT_COST;
}

/* Whether the segment at `i` of the order begins a unit, where the last one costs `unit_cost`. */
static bool begins_unit(const struct merging *merging, size_t i, uint64_t unit_cost)
{
	const struct select_segment *in = merging->order[i], *before;

	if (!i)
		return true;
	before = merging->order[i - 1];
	if (is_large(in) || is_large(before) || unit_cost > UNIT_COST_MAX)
		return true;
	return unit_cost > UNIT_COST &&
	       (!in->segment->kin || in->segment->kin != before->segment->kin);
}

static void cut_units(struct merging *merging)
{
	uint64_t unit_cost = 0;

	for (size_t i = 0; i < merging->order_count; i++) {
		uint64_t cost = cost_of(merging->order[i]);

		if (begins_unit(merging, i, unit_cost)) {
			merging->units[merging->units_count++] = (struct unit){ .first = i };
			unit_cost = 0;
		}
		merging->units[merging->units_count - 1].end = i + 1;
		unit_cost += cost;
		merging->cost += cost;
	}
}

/* Rows that decide on their groups add groups: then one thread does all. */
static bool needs_one_thread(const struct merging *merging)
{
	for (size_t i = 0; i < merging->order_count; i++)
		if (merging->order[i]->by_rows)
			return true;
	return false;
}

static int run_units(struct merging *merging, struct err *err)
{
	struct work *work = merging->selection->work;
	bool alone = needs_one_thread(merging);
	int rc = 0;

	for (size_t i = 0; !rc && i < merging->units_count; i++)
		if (alone || is_large(merging->order[merging->units[i].first]))
			rc = merge_unit(merging, work, &merging->units[i], !alone, err);
	if (!rc)
		rc = team_run(work, merging->units_count, merging->cost, merge_one_unit, merging,
			      err);
	return rc ? rc : work_lost(work, err);
}

/* All units into the first. */
static int join_units(struct merging *merging, struct err *err)
{
	struct work *work = merging->selection->work;
	struct heap *into = &merging->units[0].heap;
	int rc = 0;

	for (size_t i = 1; !rc && i < merging->units_count; i++) {
		struct heap *heap = &merging->units[i].heap;
		struct tables_view view;
		struct arena scratch;

		arena_init(&scratch, work->limit_bytes);
		if (!trie_view(&heap->trie, &scratch, &view))
			rc = work_over_budget(work, err);
		else
			rc = add_sums(into, work, &view, heap->sums, heap->sums_count, err);
		into->rows += heap->rows;
		arena_free(&scratch);
		free_heap(work, heap);
	}
	merging->units_count = 1;
	return rc ? rc : fold_heap(merging->selection, work, into, err);
}

/* The values, rounded. */
static int round_values(const struct selection *selection, const struct heap *heap,
			struct merge_trie *into, struct err *err)
{
	into->values =
		arena_new_array(&selection->work->arena, struct merge_value, heap->sums_count);
	if (!into->values)
		return work_over_budget(selection->work, err);
	for (size_t i = 0; i < heap->sums_count; i++) {
		const struct accumulate_sum *sum = &heap->sums[i];
		int64_t value = mean_round(sum->value, selection->denominator);

		if (value)
			into->values[into->values_count++] =
				(struct merge_value){ sum->stack, sum->group, value };
	}
	return 0;
}

/* The heap's trie changes hands, and stays counted. */
static int take_heap(struct merging *merging, struct heap *heap, struct merge *merge,
		     struct err *err)
{
	struct work *work = merging->selection->work;
	struct merge_trie *into = &merge->tries[merge->tries_count];
	int rc = 0;

	if (heap->view)
		into->view = *heap->view;
	else if (!trie_view(&heap->trie, &work->arena, &into->view))
		rc = work_over_budget(work, err);
	if (!rc)
		rc = round_values(merging->selection, heap, into, err);
	if (rc)
		return rc;
	merge->tries_count++;
	merge->rows += heap->rows;
	into->own = heap->trie;
	work->other_bytes -= heap->sums_capacity * sizeof(*heap->sums);
	free(heap->sums);
	*heap = (struct heap){ 0 };
	return work_check(work, err);
}

int merge_segments(struct selection *selection, bool as_one, struct merge *ret, struct err *err)
{
	struct merging merging = { .selection = selection,
				   .as_one = as_one || selection->denominator != 1 };
	size_t units_count;
	int rc;

	*ret = (struct merge){ 0 };
	rc = order_segments(&merging, err);
	if (rc || !merging.order_count)
		return rc;
	cut_units(&merging);
	units_count = merging.units_count;
	ret->tries = arena_new_array(&selection->work->arena, struct merge_trie, units_count);
	rc = ret->tries ? run_units(&merging, err) : work_over_budget(selection->work, err);
	if (!rc && merging.as_one && units_count > 1)
		rc = join_units(&merging, err);
	for (size_t i = 0; !rc && i < merging.units_count; i++)
		rc = take_heap(&merging, &merging.units[i].heap, ret, err);
	for (size_t i = 0; i < units_count; i++)
		free_heap(selection->work, &merging.units[i].heap);
	return rc;
}

void merge_free(struct merge *merge)
{
	for (size_t i = 0; i < merge->tries_count; i++)
		trie_free(&merge->tries[i].own);
	*merge = (struct merge){ 0 };
}
