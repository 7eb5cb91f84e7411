/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/merge.h"

#include <stdlib.h>

#include "base/mem.h"
#include "server/query/team.h"

/* In rows; not by the number of CPUs, so that answers do not depend on it. */
#define UNIT_COST ((uint64_t)2 << 20)
#define NODE_COST 32u		/* a node of a segment, in rows */
#define SEGMENT_COST 20000u	/* a segment */
#define TOGETHER_ROWS UNIT_COST /* a segment that is worth several threads by itself */

/* Sums over tables of its own; growing. */
struct trie {
	struct tables *tables;
	struct accumulate_sum *sums;
	size_t sums_count, sums_capacity;
	uint64_t rows;
};

/* Segments first .. end - 1 of the order. */
struct unit {
	size_t first, end;
	struct trie trie;
};

struct merging {
	struct selection *selection;
	struct select_segment **order; /* with reports; kin behind kin */
	size_t order_count;
	struct unit *units;
	size_t units_count;
	uint64_t cost;
};

static void free_trie(struct trie *trie)
{
	if (trie->tables) {
		tables_free(trie->tables);
		free(trie->tables);
	}
	free(trie->sums);
	*trie = (struct trie){ 0 };
}

static size_t trie_bytes(const struct trie *trie)
{
	return tables_bytes(trie->tables) + trie->sums_capacity * sizeof(*trie->sums);
}

/* Adds sums of another trie, in the order of its nodes. */
static int add_sums(struct trie *trie, struct work *work, const struct tables_view *view,
		    const struct accumulate_sum *sums, size_t count, struct err *err)
{
	size_t other_bytes = work->other_bytes, before = trie_bytes(trie);
	struct tables_copy copy;
	int rc = 0;

	tables_copy_begin(&copy, trie->tables, view);
	for (size_t i = 0; !rc && i < count; i++) {
		struct accumulate_sum sum = sums[i];

		sum.stack = tables_copy_node(&copy, sum.stack);
		if (sum.stack == TABLES_FULL) {
			rc = work_over_budget(work, err);
			break;
		}
		mem_grow(trie->sums, trie->sums_count, trie->sums_capacity);
		trie->sums[trie->sums_count++] = sum;
		if (i % WORK_TICKS_PER_CHECK == 0)
			work->other_bytes = other_bytes + trie_bytes(trie) - before;
		rc = work_tick(work, 16, err);
	}
	work->other_bytes = other_bytes + trie_bytes(trie) - before;
	tables_copy_end(&copy);
	return rc;
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

/* The sums of a trie that several segments went into, each stack once. */
static int fold_trie(const struct selection *selection, struct work *work, struct trie *trie,
		     struct err *err)
{
	struct accumulate_sum *sums = trie->sums;
	size_t count = trie->sums_count;
	struct arena scratch;
	int rc;

	arena_init(&scratch, work->limit_bytes);
	rc = add_up(selection, &scratch, (uint32_t)trie->tables->nodes.count, &sums, &count, err);
	if (!rc) {
		if (count)
			memcpy(trie->sums, sums, count * sizeof(*sums));
		trie->sums_count = count;
	}
	arena_free(&scratch);
	return rc;
}

static int add_segment(struct merging *merging, struct work *work, struct trie *trie,
		       struct select_segment *in, bool together, struct err *err)
{
	struct accumulate_sums sums = { 0 };
	struct arena scratch;
	int rc;

	arena_init(&scratch, work->limit_bytes);
	rc = accumulate_segment(merging->selection, work, in, together, &scratch, &sums, err);
	if (!rc) {
		work->other_bytes += scratch.used_bytes;
		rc = add_sums(trie, work, in->view, sums.list, sums.count, err);
		work->other_bytes -= scratch.used_bytes;
	}
	trie->rows += sums.rows;
	work->stats.nodes_merged += in->view->nodes_count;
	arena_free(&scratch);
	return work_spare(in->segment, rc);
}

static void begin_trie(struct trie *trie)
{
	trie->tables = mem_new(struct tables);
	tables_init(trie->tables);
}

static int merge_unit(struct merging *merging, struct work *work, struct unit *unit, bool together,
		      struct err *err)
{
	int rc = 0;

	begin_trie(&unit->trie);
	for (size_t i = unit->first; !rc && i < unit->end; i++)
		rc = add_segment(merging, work, &unit->trie, merging->order[i], together, err);
	return rc ? rc : fold_trie(merging->selection, work, &unit->trie, err);
}

/* A step for a team. */
static int merge_one_unit(void *context, struct work *work, size_t index, struct err *err)
{
	struct merging *merging = context;
	struct unit *unit = &merging->units[index];

	return unit->trie.tables ? 0 : merge_unit(merging, work, unit, false, err);
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
	return in->rows_count + (uint64_t)in->segment->slots_count * NODE_COST + SEGMENT_COST;
}

/* A large segment is a unit of its own. */
static void cut_units(struct merging *merging)
{
	uint64_t unit_cost = 0;

	for (size_t i = 0; i < merging->order_count; i++) {
		uint64_t cost = cost_of(merging->order[i]);
		bool apart = i && (is_large(merging->order[i]) || is_large(merging->order[i - 1]));

		if (!i || apart || unit_cost + cost > UNIT_COST) {
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
static int join_units(struct merging *merging, struct trie *into, struct err *err)
{
	struct work *work = merging->selection->work;
	int rc = 0;

	if (!merging->units_count) {
		begin_trie(into);
		return 0;
	}
	*into = merging->units[0].trie;
	merging->units[0].trie = (struct trie){ 0 };
	for (size_t i = 1; !rc && i < merging->units_count; i++) {
		struct trie *trie = &merging->units[i].trie;
		struct tables_view view = tables_view_of(trie->tables);

		rc = add_sums(into, work, &view, trie->sums, trie->sums_count, err);
		into->rows += trie->rows;
		work->stats.nodes_merged += view.nodes_count;
		free_trie(trie);
	}
	return rc;
}

/* The values, rounded, ordered by group. */
static int round_values(const struct selection *selection, struct merge *merge,
			struct accumulate_sum *sums, size_t count, struct err *err)
{
	struct arena *arena = &selection->work->arena;
	struct arena scratch;
	int rc;

	arena_init(&scratch, selection->work->limit_bytes);
	rc = add_up(selection, &scratch, merge->view.nodes_count, &sums, &count, err);
	if (!rc)
		merge->values = arena_new_array(arena, struct merge_value, count);
	if (!rc && !merge->values)
		rc = work_over_budget(selection->work, err);
	for (size_t i = 0; !rc && i < count; i++) {
		int64_t value = mean_round(sums[i].value, selection->denominator);

		if (value)
			merge->values[merge->values_count++] =
				(struct merge_value){ sums[i].stack, sums[i].group, value };
	}
	arena_free(&scratch);
	return rc;
}

static int merge_one(struct merging *merging, struct merge *merge, struct err *err)
{
	struct selection *selection = merging->selection;
	struct select_segment *only = merging->order[0];
	struct accumulate_sums sums = { 0 };
	struct arena scratch;
	int rc;

	arena_init(&scratch, selection->work->limit_bytes);
	rc = accumulate_segment(selection, selection->work, only, true, &scratch, &sums, err);
	merge->view = *only->view;
	merge->rows = sums.rows;
	if (!rc)
		rc = round_values(selection, merge, sums.list, sums.count, err);
	arena_free(&scratch);
	return rc;
}

static int merge_several(struct merging *merging, struct merge *merge, struct err *err)
{
	struct trie all = { 0 };
	int rc;

	cut_units(merging);
	rc = run_units(merging, err);
	if (!rc)
		rc = join_units(merging, &all, err);
	if (!rc) {
		merge->view = tables_view_of(all.tables);
		merge->rows = all.rows;
		rc = round_values(merging->selection, merge, all.sums, all.sums_count, err);
		merge->own = all.tables;
		all.tables = NULL;
	}
	free_trie(&all);
	for (size_t i = 0; i < merging->units_count; i++)
		free_trie(&merging->units[i].trie);
	return rc;
}

int merge_segments(struct selection *selection, struct merge *ret, struct err *err)
{
	struct merging merging = { .selection = selection };
	int rc;

	*ret = (struct merge){ 0 };
	rc = order_segments(&merging, err);
	if (rc)
		return rc;
	return merging.order_count == 1 ? merge_one(&merging, ret, err)
					: merge_several(&merging, ret, err);
}

void merge_free(struct merge *merge)
{
	if (merge->own) {
		tables_free(merge->own);
		free(merge->own);
	}
	*merge = (struct merge){ 0 };
}
