/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments (items) are summed in runs of the source's order, then merged in units: items of one
 * partition key, side by side, whose tries become one in a heap.
 *
 * Invariant: runs and units are cut by the cost of the data, each is worked off in the order of its
 * items, and units are put together in their order. So the answer does not depend on how many
 * threads there are or which is faster.
 *
 * A heap is a trie and a list of sums over it, to which each item appends its own. The list is
 * folded (equal stacks become one sum) when it has doubled since the last time: the work goes with
 * what was added, and the memory with distinct stacks, not with segments.
 *
 * Why by partition key: parts of one service have much the same stacks in the same order, which is
 * what a trie takes in fastest, while it is in the cache (sum/trie.h).
 */
#include "server/query/shape/merge.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/query/team.h"
#include "server/query/sum/trie_prune.h"

/*
 * Roughly in ns; not by the number of CPUs, so that answers do not depend on it. Segments of one
 * partition key stay in one unit as long as that does not make it a giant. Segments are first
 * summed in runs of the source's order, in which neighbours lie in the same stripes of a part.
 */
#define UNIT_COST ((uint64_t)4 << 20)
#define UNIT_COST_MAX (64 * UNIT_COST)
#define MERGE_PARTS 3u /* of the memory, where summing takes one */
#define ROW_COST 4u
#define NODE_COST 50u
#define SEGMENT_COST 20000u
#define RUN_COST ((uint64_t)2 << 20)
#define APART_BYTES ((size_t)96 << 20)	  /* of tries in memory at once, if nothing else is said */
#define OWN_SUMS ((size_t)4 << 10)	  /* of a segment: freed when they are merged */
#define FOLD_SUMS ((size_t)128 << 10)	  /* added until a heap is folded, and half of it */
#define TOGETHER_ROWS ((uint64_t)2 << 20) /* of a segment that is worth several threads */

/* Sums over a trie of their own, or over that of a segment. */
struct heap {
	struct trie trie;
	const struct tables_view *view; /* the segment's; NULL: see trie */
	struct tables_view finished;	/* of the trie, once nothing is added any more */
	struct accumulate_sum *sums;
	size_t sums_count, sums_capacity; /* capacity 0: they are an item's */
	size_t folded_count;		  /* of sums, when they were folded last */
	uint64_t rows;
	bool begun, is_finished;
};

/* A segment with reports, and its sums. */
struct item {
	struct select_segment *in;
	struct accumulate_sums sums; /* in its own arena if they are many, or the run's */
	struct arena arena;
	bool is_folded; /* its sums are an earlier item's */
};

/* Items first .. end - 1, in the source's order. */
struct run {
	size_t first, end;
	struct arena arena;
	bool begun;
};

/* Items first .. end - 1 of the order. */
struct unit {
	size_t first, end;
	struct heap heap;
};

struct merging {
	struct selection *selection;
	struct item *items;
	size_t items_count;
	struct run *runs;
	size_t runs_count;
	struct run *alike;   /* items of one partition each */
	struct item **order; /* equal partition keys side by side; those without an index */
	size_t order_count;
	struct unit *units;
	size_t units_count;
	uint64_t cost;
	bool as_one, apart;
};

static size_t heap_bytes(const struct heap *heap)
{
	return trie_bytes(&heap->trie) + heap->sums_capacity * sizeof(*heap->sums);
}

/* Counted by whichever thread: what one adds and another takes off comes out even. */
static void begin_heap(struct work *work, struct heap *heap, const struct tables_view *view)
{
	assert(!heap->begun);
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
	if (heap->sums_capacity)
		free(heap->sums);
	*heap = (struct heap){ 0 };
}

/* The sums' indexes ordered by group, stable: a counting sort. */
static uint32_t *order_by_group(const struct accumulate_sum *sums, size_t count,
				size_t groups_count, struct arena *arena)
{
	uint32_t *starts = arena_new_array(arena, uint32_t, groups_count + 1);
	uint32_t *order = arena_new_array(arena, uint32_t, count);

	assert(sums || !count);
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

	assert(nodes_count > 0);
	assert(*sums || !*sums_count);
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

	assert(heap->folded_count <= heap->sums_count);
	if (count == heap->folded_count)
		return 0;
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
		heap->folded_count = count;
	}
	arena_free(&scratch);
	return rc;
}

/*
 * Adds sums of another trie; their stacks are renamed. Over a segment's trie there is one list of
 * sums, which is not copied: it lives until the runs are freed. Else they are folded now and then:
 * memory is for distinct stacks, however many segments have them.
 */
static int add_sums(const struct selection *selection, struct heap *heap, struct work *work,
		    const struct tables_view *view, struct accumulate_sum *sums, size_t count,
		    struct err *err)
{
	int rc = 0;

	assert(sums || !count);
	assert(!heap->is_finished);
	if (heap->view) {
		heap->sums = sums;
		heap->sums_count = count;
		return 0;
	}
	rc = trie_add(&heap->trie, work, view, sums, count, err);
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
	if (heap->sums_count >= FOLD_SUMS + 2 * heap->folded_count)
		rc = fold_heap(selection, work, heap, err);
	return rc ? rc : work_check(work, err);
}

/* Nothing is added any more. */
static void finish_heap(struct work *work, struct heap *heap)
{
	if (heap->view || heap->is_finished)
		return;
	work->other_bytes -= heap_bytes(heap);
	trie_finish(&heap->trie, &heap->finished);
	if (heap->sums_capacity) {
		heap->sums_capacity = heap->sums_count ? heap->sums_count : 1;
		heap->sums = mem_realloc(heap->sums, heap->sums_capacity, sizeof(*heap->sums));
	}
	heap->is_finished = true;
	work->other_bytes += heap_bytes(heap);
}

static uint64_t cost_of(const struct select_segment *in)
{
	return in->rows_count * ROW_COST + (uint64_t)in->segment->slots_count * NODE_COST +
	       SEGMENT_COST;
}

/* Sums that are not many share the run's memory. */
static struct arena *arena_of(struct run *run, struct item *item, const struct work *work)
{
	const struct select_segment *in = item->in;

	if (in->segment->slots_count < OWN_SUMS || in->rows_count < OWN_SUMS)
		return &run->arena;
	arena_init(&item->arena, work->limit_bytes);
	return &item->arena;
}

static void free_item(struct work *work, struct item *item)
{
	work->other_bytes -= item->arena.used_bytes;
	arena_free(&item->arena);
}

/* Sums the segments of a run, in their order. */
static int sum_run(struct merging *merging, struct work *work, struct run *run, bool together,
		   struct err *err)
{
	int rc = 0;

	assert(run->first < run->end && run->end <= merging->items_count);
	run->begun = true;
	arena_init(&run->arena, work->limit_bytes);
	for (size_t i = run->first; !rc && i < run->end; i++) {
		struct item *item = &merging->items[i];

		if (item->in->index)
			rc = indexed_sum(merging->selection, work, item->in, together,
					 &item->sums.rows, err);
		else
			rc = accumulate_segment(merging->selection, work, item->in, together,
						arena_of(run, item, work), &item->sums, err);
		work->other_bytes += item->arena.used_bytes;
		rc = work_spare(item->in->segment, rc);
		atomic_fetch_add_explicit(&work->shared->cost_done, cost_of(item->in),
					  memory_order_relaxed);
	}
	work->other_bytes += run->arena.used_bytes;
	return rc ? rc : work_check(work, err);
}

/* A step for a team. */
static int sum_one_run(void *context, struct work *work, size_t index, struct err *err)
{
	struct merging *merging = context;
	struct run *run = &merging->runs[index];

	return run->begun ? 0 : sum_run(merging, work, run, false, err);
}

/* Tables and pictures of single tries do not mind in which order values come. */
static bool is_any_order(const struct merging *merging)
{
	return merging->apart || merging->selection->params->rows_only;
}

static int add_item(const struct merging *merging, struct work *work, struct heap *heap,
		    struct item *item, struct err *err)
{
	struct segment *segment = item->in->segment;
	struct arena scratch;
	int rc = work_load_stacks(work, segment, err);

	if (rc)
		return rc;
	arena_init(&scratch, work->limit_bytes);
	if (is_any_order(merging))
		accumulate_rename(segment, &item->sums);
	else if (!accumulate_find_nodes(segment, &scratch, &item->sums))
		rc = work_over_budget(work, err);
	arena_free(&scratch);
	if (!rc)
		rc = add_sums(merging->selection, heap, work, item->in->view, item->sums.list,
			      item->sums.count, err);
	if (!heap->view)
		free_item(work, item);
	heap->rows += item->sums.rows;
	work->stats.nodes_merged += item->in->view->nodes_count;
	atomic_fetch_add_explicit(&work->shared->cost_done, MERGE_PARTS * cost_of(item->in),
				  memory_order_relaxed);
	return rc;
}

/* True if the other units will be added to it. */
static bool is_joined_into(const struct merging *merging, const struct unit *unit)
{
	return merging->as_one && merging->units_count > 1 && unit == merging->units;
}

static int merge_unit(struct merging *merging, struct work *work, struct unit *unit,
		      struct err *err)
{
	bool alone =
		unit->end - unit->first == 1 && (!merging->as_one || merging->units_count == 1);
	struct heap *heap = &unit->heap;
	int rc = 0;

	assert(unit->first < unit->end && unit->end <= merging->order_count);
	begin_heap(work, heap, alone ? merging->order[unit->first]->in->view : NULL);
	for (size_t i = unit->first; !rc && i < unit->end; i++) {
		struct segment *segment = merging->order[i]->in->segment;

		rc = work_spare(segment, add_item(merging, work, heap, merging->order[i], err));
		if (!alone)
			work_drop_stacks(work, segment);
	}
	if (!rc && !alone)
		rc = fold_heap(merging->selection, work, heap, err);
	if (!rc && !is_joined_into(merging, unit))
		finish_heap(work, heap);
	return rc;
}

/* A step for a team. */
static int merge_one_unit(void *context, struct work *work, size_t index, struct err *err)
{
	struct merging *merging = context;

	return merge_unit(merging, work, &merging->units[index], err);
}

static int partition_key_order(const void *left, const void *right)
{
	const struct item *a = *(struct item *const *)left, *b = *(struct item *const *)right;
	uint64_t a_key_hash = a->in->segment->partition_key_hash,
		 b_key_hash = b->in->segment->partition_key_hash;

	if (a_key_hash != b_key_hash)
		return a_key_hash < b_key_hash ? -1 : 1;
	return (a > b) - (a < b);
}

static int take_items(struct merging *merging, struct err *err)
{
	struct selection *selection = merging->selection;
	struct arena *arena = &selection->work->arena;
	size_t most = selection->segments_count;

	merging->items = arena_new_array(arena, struct item, most);
	merging->order = arena_new_array(arena, struct item *, most);
	merging->runs = arena_new_array(arena, struct run, most);
	merging->units = arena_new_array(arena, struct unit, most);
	merging->alike = arena_new_array(arena, struct run, most);
	if (!merging->items || !merging->order || !merging->runs || !merging->units ||
	    !merging->alike)
		return work_over_budget(selection->work, err);
	for (size_t i = 0; i < most; i++) {
		if (!selection->segments[i].blocks_count)
			continue;
		merging->items[merging->items_count].in = &selection->segments[i];
		if (!selection->segments[i].index)
			merging->order[merging->order_count++] =
				&merging->items[merging->items_count];
		merging->items_count++;
	}
	if (merging->order_count)
		qsort(merging->order, merging->order_count, sizeof(struct item *),
		      partition_key_order);
	return 0;
}

static bool is_large(const struct select_segment *in)
{
	return in->rows_count >= TOGETHER_ROWS && !in->by_rows;
}

/* Large segments are runs of their own. */
static void cut_runs(struct merging *merging)
{
	uint64_t run_cost = 0;
	bool after_large = true;

	for (size_t i = 0; i < merging->items_count; i++) {
		const struct select_segment *in = merging->items[i].in;

		if (after_large || is_large(in) || run_cost > RUN_COST) {
			merging->runs[merging->runs_count++] = (struct run){ .first = i };
			run_cost = 0;
		}
		merging->runs[merging->runs_count - 1].end = i + 1;
		run_cost += cost_of(in);
		merging->cost += cost_of(in);
		after_large = is_large(in);
	}
}

/* True if the item at `i` of the order begins a unit, where the last one costs `unit_cost`. */
static bool begins_unit(const struct merging *merging, size_t i, uint64_t unit_cost)
{
	uint64_t key_hash = merging->order[i]->in->segment->partition_key_hash;

	assert(i < merging->order_count);
	if (!i || unit_cost > UNIT_COST_MAX || merging->apart)
		return true;
	if (key_hash && key_hash == merging->order[i - 1]->in->segment->partition_key_hash)
		return false;
	return !merging->as_one || unit_cost > UNIT_COST;
}

static void cut_units(struct merging *merging)
{
	uint64_t unit_cost = 0;

	for (size_t i = 0; i < merging->order_count; i++) {
		if (begins_unit(merging, i, unit_cost)) {
			merging->units[merging->units_count++] = (struct unit){ .first = i };
			unit_cost = 0;
		}
		merging->units[merging->units_count - 1].end = i + 1;
		unit_cost += cost_of(merging->order[i]->in);
	}
}

/* Rows that decide on their groups add groups: then one thread does all. */
static bool needs_one_thread(const struct merging *merging)
{
	for (size_t i = 0; i < merging->items_count; i++)
		if (merging->items[i].in->by_rows)
			return true;
	return false;
}

static int sum_runs(struct merging *merging, struct err *err)
{
	struct work *work = merging->selection->work;
	bool alone = needs_one_thread(merging);
	int rc = 0;

	for (size_t i = 0; !rc && i < merging->runs_count; i++)
		if (alone || is_large(merging->items[merging->runs[i].first].in))
			rc = sum_run(merging, work, &merging->runs[i], !alone, err);
	if (!rc)
		rc = team_run(work, merging->runs_count, merging->cost, sum_one_run, merging, err);
	return rc ? rc : work_lost(work, err);
}

/*
 * Levels of one partition share its dictionaries, so their sums are of the same slots: they are
 * added up before any trie is looked at, and the first item has them all. Ranges that cut hours
 * have up to seven pieces of each partition.
 */
static int fold_items(struct merging *merging, struct work *work, const struct run *alike,
		      struct err *err)
{
	struct item *into = &merging->items[alike->first];
	struct accumulate_sums sums = { 0 };
	struct arena arena;
	int rc;

	for (size_t i = alike->first; i < alike->end; i++)
		sums.count += merging->items[i].sums.count;
	arena_init(&arena, work->limit_bytes);
	sums.list = arena_new_array(&arena, struct accumulate_sum, sums.count);
	if (!sums.list) {
		arena_free(&arena);
		return work_over_budget(work, err);
	}
	sums.count = 0;
	for (size_t i = alike->first; i < alike->end; i++) {
		const struct accumulate_sums *more = &merging->items[i].sums;

		if (more->count)
			memcpy(sums.list + sums.count, more->list,
			       more->count * sizeof(*more->list));
		sums.count += more->count;
		sums.rows += more->rows;
		free_item(work, &merging->items[i]);
		merging->items[i].arena = (struct arena){ 0 };
		merging->items[i].sums = (struct accumulate_sums){ 0 };
	}
	rc = add_up(merging->selection, &arena, into->in->segment->slots_count, &sums.list,
		    &sums.count, err);
	work->other_bytes += arena.used_bytes;
	into->arena = arena;
	into->sums = sums;
	return rc ? rc : work_check(work, err);
}

/* A step for a team. */
static int fold_one(void *context, struct work *work, size_t index, struct err *err)
{
	struct merging *merging = context;

	return fold_items(merging, work, &merging->alike[index], err);
}

static bool are_alike(const struct select_segment *a, const struct select_segment *b)
{
	return a->segment->ops && b->segment->ops && a->segment->id == b->segment->id &&
	       !a->index && !b->index;
}

/* Neighbours of one partition become one item; the others leave the order. */
static int fold_alike(struct merging *merging, struct err *err)
{
	struct work *work = merging->selection->work;
	size_t count = 0, kept = 0;

	for (size_t i = 0, end; i < merging->items_count; i = end) {
		for (end = i + 1; end < merging->items_count &&
				  are_alike(merging->items[i].in, merging->items[end].in);)
			merging->items[end++].is_folded = true;
		if (end - i > 1)
			merging->alike[count++] = (struct run){ .first = i, .end = end };
	}
	for (size_t i = 0; i < merging->order_count; i++)
		if (!merging->order[i]->is_folded)
			merging->order[kept++] = merging->order[i];
	merging->order_count = kept;
	return team_run(work, count, merging->cost, fold_one, merging, err);
}

static void free_runs(struct merging *merging)
{
	for (size_t i = 0; i < merging->runs_count; i++) {
		merging->selection->work->other_bytes -= merging->runs[i].arena.used_bytes;
		arena_free(&merging->runs[i].arena);
	}
	merging->runs_count = 0;
	for (size_t i = 0; i < merging->items_count; i++)
		free_item(merging->selection->work, &merging->items[i]);
}

/* All units into the first. */
static int join_units(struct merging *merging, struct err *err)
{
	struct work *work = merging->selection->work;
	struct heap *into = &merging->units[0].heap;
	int rc = 0;

	for (size_t i = 1; !rc && i < merging->units_count; i++) {
		struct heap *heap = &merging->units[i].heap;

		rc = add_sums(merging->selection, into, work, &heap->finished, heap->sums,
			      heap->sums_count, err);
		into->rows += heap->rows;
		free_heap(work, heap);
	}
	merging->units_count = 1;
	return rc ? rc : fold_heap(merging->selection, work, into, err);
}

/* The values, or what they are means of. */
static int take_values(const struct selection *selection, const struct heap *heap,
		       struct merge_trie *into, struct err *err)
{
	struct arena *arena = &selection->work->arena;
	bool is_exact = selection->denominator != 1;
	mean_wide *exact = is_exact ? arena_new_array(arena, mean_wide, heap->sums_count) : NULL;

	into->values = arena_new_array(arena, struct merge_value, heap->sums_count);
	if (!into->values || (is_exact && !exact))
		return work_over_budget(selection->work, err);
	for (size_t i = 0; i < heap->sums_count; i++) {
		const struct accumulate_sum *sum = &heap->sums[i];

		if (!sum->value)
			continue;
		if (is_exact)
			exact[into->values_count] = sum->value;
		into->values[into->values_count++] =
			(struct merge_value){ sum->stack, sum->group,
					      is_exact ? 0 : mean_round(sum->value, 1) };
	}
	into->exact = exact;
	return 0;
}

/* The heap's trie changes hands, and stays counted. */
static int take_heap(struct merging *merging, struct heap *heap, struct merge *merge,
		     struct err *err)
{
	struct work *work = merging->selection->work;
	struct merge_trie *into = &merge->tries[merge->tries_count];
	int rc;

	assert(merge->tries);
	finish_heap(work, heap);
	into->view = heap->view ? *heap->view : heap->finished;
	rc = take_values(merging->selection, heap, into, err);
	if (!rc && trie_prune_pays(into) && !trie_prune_apply(into, &work->arena))
		rc = work_over_budget(work, err);
	if (rc)
		return rc;
	merge_trie_check(into);
	merge->tries_count++;
	merge->rows += heap->rows;
	into->own = heap->trie;
	work->other_bytes -= heap->sums_capacity * sizeof(*heap->sums);
	if (heap->sums_capacity)
		free(heap->sums);
	*heap = (struct heap){ 0 };
	return work_check(work, err);
}

static bool fit_apart(const struct merging *merging)
{
	size_t bytes = 0, max = merging->selection->params->limits.apart_bytes;

	for (size_t i = 0; i < merging->items_count; i++)
		bytes += merging->items[i].in->segment->stacks_bytes;
	return bytes <= (max ? max : APART_BYTES);
}

int merge_segments(struct selection *selection, enum merge_how how, struct merge *ret,
		   struct err *err)
{
	struct merging merging = { .selection = selection,
				   .as_one = how == MERGE_AS_ONE || selection->denominator != 1 };
	struct work *work = selection->work;
	size_t units_count;
	int rc;

	*ret = (struct merge){ .is_exact = selection->denominator != 1,
			       .denominator = selection->denominator };
	rc = take_items(&merging, err);
	if (rc || !merging.items_count)
		return rc;
	merging.apart = how == MERGE_APART && !merging.as_one && fit_apart(&merging);
	cut_runs(&merging);
	work->shared->cost_all = (1 + MERGE_PARTS) * merging.cost;
	atomic_store(&work->shared->cost_done, 0);
	rc = sum_runs(&merging, err);
	if (!rc)
		rc = fold_alike(&merging, err);
	cut_units(&merging);
	units_count = merging.units_count;
	ret->tries = arena_new_array(&work->arena, struct merge_trie, units_count);
	if (!rc && !ret->tries)
		rc = work_over_budget(work, err);
	if (!rc)
		rc = team_run(work, units_count, merging.cost, merge_one_unit, &merging, err);
	if (!rc)
		rc = work_lost(work, err);
	if (merging.as_one && units_count > 1)
		free_runs(&merging); /* no heap has sums of theirs */
	if (!rc && merging.as_one && units_count > 1)
		rc = join_units(&merging, err);
	for (size_t i = 0; !rc && i < merging.units_count; i++)
		rc = take_heap(&merging, &merging.units[i].heap, ret, err);
	for (size_t i = 0; i < merging.items_count; i++)
		if (merging.items[i].in->index)
			ret->rows += merging.items[i].sums.rows;
	for (size_t i = 0; i < units_count; i++)
		free_heap(work, &merging.units[i].heap);
	free_runs(&merging);
	return rc;
}

void merge_free(struct merge *merge)
{
	for (size_t i = 0; i < merge->tries_count; i++)
		trie_free(&merge->tries[i].own);
	*merge = (struct merge){ 0 };
}
