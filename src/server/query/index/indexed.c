/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/index/indexed.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/resolve/resolver.h"

#define SLOTS_AHEAD 24u

static bool is_served(const struct selection *selection, const struct query_source *source)
{
	const struct query_params *params = selection->params;

	return source->indexes && params->rows_only && params->rows_limit &&
	       params->rows_limit <= INDEXED_LIMIT_MAX && !params->group_by_count &&
	       !(params->filters && params->filters->count) && selection->denominator == 1;
}

/*
 * Failures to find symbols are remembered for a while, and end when they are asked about again;
 * what comes of it is another version.
 */
static void look_again(const struct function_index *index, struct resolver *resolver)
{
	for (uint32_t i = 0; i < index->looked_in_count; i++) {
		const struct function_index_binary *binary = &index->looked_in[i];
		struct resolver_symbols symbols;

		resolver_open(resolver, binary->build_id, binary->mapping, binary->by_offset,
			      clock_monotonic_ns(), &symbols);
		resolver_close(resolver, &symbols);
	}
}

static void release(struct indexed *indexed, struct index_candidate *candidate)
{
	if (candidate->holds)
		index_cache_release(indexed->cache, candidate->index);
	candidate->holds = false;
}

/* The candidates of these segments go by the index, which the first of them holds. */
static void take_index(struct indexed *indexed, struct index_plan *plan,
		       const struct function_index *index)
{
	bool held = false;

	assert(index->members || !index->members_count);
	for (size_t i = 0; i < plan->candidates_count; i++) {
		struct index_candidate *candidate = &plan->candidates[i];
		uint32_t member = 0;

		while (member < index->members_count &&
		       index->members[member].segment != candidate->in->segment->id)
			member++;
		if (member == index->members_count)
			continue;
		release(indexed, candidate);
		candidate->index = index;
		candidate->member = member;
		candidate->holds = !held;
		held = true;
	}
}

/* An index of `count` of the plan's segments. With all, its memory takes the place of the olds'. */
static int make_index(struct indexed *indexed, struct index_plan *plan, struct segment **segments,
		      size_t count, struct err *err)
{
	const struct query_source *source = indexed->source;
	struct function_index *index = NULL;
	int rc = function_index_make(segments, count, source->resolver, indexed->selection->params,
				     &index, err);

	assert(count > 0);
	if (index) {
		indexed->selection->work->stats.indexes_made++;
		for (size_t i = 0; count == plan->count && i < plan->candidates_count; i++)
			if (index_plan_joins(plan, plan->candidates[i].index))
				release(indexed, &plan->candidates[i]);
		index_cache_put(indexed->cache, indexed->query, &indexed->key, index);
		take_index(indexed, plan, index);
	}
	/* It goes without; who reads a segment that cannot be read says so. */
	return rc == -ERR_NO_MEMORY || rc == -ERR_CORRUPT ? 0 : rc;
}

/* As many of the segments as may be together. */
static size_t count_together(struct segment *const *segments, size_t count)
{
	size_t bytes = segments[0]->stacks_bytes, end = 1;

	while (end < count && bytes + segments[end]->stacks_bytes <= INDEX_PLAN_BYTES_MAX)
		bytes += segments[end++]->stacks_bytes;
	return end;
}

/* Indexes the segments of one key: all, or as many at a time as the memory allows. */
static int make_indexes(struct indexed *indexed, struct index_plan *plan, struct err *err)
{
	int rc = 0;

	for (size_t at = 0, count; !rc && at < plan->due_count; at += count) {
		struct segment **segments = &plan->segments[at];

		count = count_together(segments, plan->due_count - at);
		while (count && !index_cache_make_room(indexed->cache, indexed->query,
						       index_plan_bytes(segments, count)))
			count /= 2;
		if (!count)
			break;
		rc = make_index(indexed, plan, segments,
				count == plan->due_count ? plan->count : count, err);
	}
	return rc;
}

/* What the cache has. */
static void find_indexes(struct indexed *indexed)
{
	for (size_t i = 0; i < indexed->candidates_count; i++) {
		struct index_candidate *candidate = &indexed->candidates[i];
		struct index_cache_found found;

		indexed->key.segment = candidate->in->segment->id;
		found = index_cache_get(indexed->cache, indexed->query, &indexed->key);
		candidate->index = found.index;
		candidate->holds = found.index;
		candidate->member = found.member;
		candidate->due = found.due;
		if (found.look && indexed->source->resolver)
			look_again(found.index, indexed->source->resolver);
	}
	index_plan_sort(indexed->candidates, indexed->candidates_count);
}

/* Makes what it is worth to make: one after the other, for each needs memory for all its stacks. */
static int make_missing(struct indexed *indexed, struct err *err)
{
	struct work *work = indexed->selection->work;
	size_t count = indexed->candidates_count;
	int rc = 0;

	for (size_t at = 0, key_hash; !rc && at < count; at += key_hash) {
		struct index_plan plan = { .candidates = &indexed->candidates[at] };

		key_hash = index_plan_partition(plan.candidates, count - at);
		plan.candidates_count = key_hash;
		if (!index_plan_make(&plan, &work->arena))
			return work_over_budget(work, err);
		rc = make_indexes(indexed, &plan, err);
	}
	return rc;
}

/* One for each index, whichever of its segments are summed; not before `first`. */
static struct indexed_sums *sums_of(struct indexed *indexed, size_t first,
				    const struct function_index *index)
{
	struct indexed_sums *sums = &indexed->sums[first];
	struct indexed_sums *end = &indexed->sums[indexed->sums_count];

	assert(first <= indexed->sums_count);
	while (sums < end && sums->index != index)
		sums++;
	if (sums < end)
		return sums;
	*sums = (struct indexed_sums){ .index = index };
	lock_init(&sums->lock, "indexed.sums", LOCK_QUERY + 1);
	indexed->sums_count++;
	return sums;
}

/* Counters of all in one piece of memory: its pages may be large ones. */
static int make_room(struct indexed *indexed, struct err *err)
{
	struct work *work = indexed->selection->work;
	size_t count = 0;
	int64_t *room;

	for (size_t i = 0; i < indexed->sums_count; i++)
		count += indexed->sums[i].index->flat_rows_count +
			 indexed->sums[i].index->stacks_count + 2ull;
	room = arena_new_array(&work->arena, int64_t, count);
	if (!room)
		return work_over_budget(work, err);
	mem_prefer_huge_pages(room, count * sizeof(*room));
	for (size_t i = 0; i < indexed->sums_count; i++) {
		struct indexed_sums *sums = &indexed->sums[i];

		sums->flats = room;
		room += sums->index->flat_rows_count + 1ull;
		sums->before = room;
		room += sums->index->stacks_count + 1ull;
	}
	return work_check(work, err);
}

static int make_sums(struct indexed *indexed, struct err *err)
{
	struct work *work = indexed->selection->work;
	size_t count = indexed->candidates_count;
	uint64_t key_hash = 0;
	size_t first = 0;

	indexed->sums = arena_new_array(&work->arena, struct indexed_sums, count);
	if (!indexed->sums)
		return work_over_budget(work, err);
	for (size_t i = 0; i < count; i++) {
		const struct index_candidate *candidate = &indexed->candidates[i];
		struct select_segment *in = candidate->in;

		if (in->segment->partition_key_hash != key_hash)
			first = indexed->sums_count; /* indexes are of one key */
		key_hash = in->segment->partition_key_hash;
		if (!candidate->index)
			continue;
		in->sums = sums_of(indexed, first, candidate->index);
		in->index = candidate->index;
		in->index_member = candidate->member;
		work->stats.indexes_used++;
	}
	return indexed->sums_count ? make_room(indexed, err) : 0;
}

int indexed_begin(struct indexed *indexed, struct selection *selection,
		  const struct query_source *source, struct err *err)
{
	int rc;

	*indexed = (struct indexed){ .selection = selection, .source = source };
	if (!is_served(selection, source))
		return 0;
	indexed->cache = source->indexes;
	indexed->key.demangle = selection->params->demangle;
	indexed->key.version = source->resolver ? resolver_version(source->resolver) : 0;
	indexed->query = index_cache_begin(indexed->cache);
	indexed->candidates = arena_new_array(&selection->work->arena, struct index_candidate,
					      selection->segments_count);
	if (!indexed->candidates)
		return work_over_budget(selection->work, err);
	for (size_t i = 0; i < selection->segments_count; i++) {
		struct select_segment *in = &selection->segments[i];

		if (in->blocks_count && in->segment->ops && in->segment->id)
			indexed->candidates[indexed->candidates_count++].in = in;
	}
	find_indexes(indexed);
	rc = make_missing(indexed, err);
	return rc ? rc : make_sums(indexed, err);
}

void indexed_end(struct indexed *indexed)
{
	for (size_t i = 0; i < indexed->candidates_count; i++)
		release(indexed, &indexed->candidates[i]);
	indexed->candidates_count = 0;
	for (size_t i = 0; i < indexed->sums_count; i++)
		lock_free(&indexed->sums[i].lock);
	indexed->sums_count = 0;
}

/* Sums of other indexes were in the cache meanwhile: what is needed soon is called for. */
static inline void call_for(const struct indexed_sums *sums, const struct function_index_member *of,
			    uint32_t slot)
{
	if (slot + SLOTS_AHEAD < of->slots_count)
		__builtin_prefetch(&sums->before[of->stack_of_slot[slot + SLOTS_AHEAD]], 1);
}

/* In a short range nearly all counters are 0, and skipping one is cheaper than adding it. */
static bool are_few(const struct select_segment *in, const struct function_index_member *of)
{
	return in->rows_count < of->slots_count / 4;
}

/* Rows that count one each. Sums of fewer than 2^31 of these need no look. */
static void add_ones(struct indexed_sums *sums, const struct function_index_member *of,
		     const uint32_t *restrict counters, bool few)
{
	const uint32_t *restrict stacks = of->stack_of_slot;
	int64_t *restrict values = sums->before;

	assert(of->stack_of_slot);
	for (uint32_t slot = 0; few && slot < of->slots_count; slot++)
		if (counters[slot])
			values[stacks[slot]] += counters[slot];
	for (uint32_t slot = 0; !few && slot < of->slots_count; slot++) {
		call_for(sums, of, slot);
		values[stacks[slot]] += counters[slot];
	}
}

static void add_plain(struct indexed_sums *sums, const struct function_index_member *of,
		      const int64_t *restrict counters, bool few)
{
	const uint32_t *restrict stacks = of->stack_of_slot;
	int64_t *restrict values = sums->before;
	bool overflowed = false;
	int64_t signs = 0;

	assert(of->stack_of_slot);
	for (uint32_t slot = 0; slot < of->slots_count; slot++) {
		int64_t *value;

		if (few && !counters[slot])
			continue;
		value = &values[stacks[slot]];
		if (!few)
			call_for(sums, of, slot);
		signs |= counters[slot];
		overflowed |= __builtin_add_overflow(*value, counters[slot], value);
	}
	sums->unsuited |= overflowed || signs < 0;
}

static void add_weighted(struct indexed_sums *sums, const struct function_index_member *of,
			 const struct accumulate_counters *counters, int64_t weight)
{
	assert(of->stack_of_slot);
	for (uint32_t slot = 0; slot < of->slots_count; slot++) {
		int64_t *sum = &sums->before[of->stack_of_slot[slot]];
		int64_t value = counters->ones ? counters->ones[slot] : 0;

		if (counters->plain)
			value = work_add(value, counters->plain[slot]);
		sums->unsuited |= value < 0 || __builtin_mul_overflow(value, weight, &value) ||
				  __builtin_add_overflow(*sum, value, sum);
	}
}

/* An accumulate_take_f: the counters of one segment. */
static int take_counters(void *context, struct work *work,
			 const struct accumulate_counters *counters, size_t count, int64_t weight,
			 struct err *err)
{
	const struct select_segment *in = context;
	const struct function_index_member *of = &in->index->members[in->index_member];
	bool few = are_few(in, of);

	assert(count > 0);
	lock_take(&in->sums->lock);
	for (size_t i = 0; i < count; i++) {
		if (weight != 1) {
			add_weighted(in->sums, of, &counters[i], weight);
			continue;
		}
		if (counters[i].ones)
			add_ones(in->sums, of, counters[i].ones, few);
		if (counters[i].plain)
			add_plain(in->sums, of, counters[i].plain, few);
	}
	lock_give(&in->sums->lock);
	return work_check(work, err);
}

/* The same of a list, which has each slot once. */
static void take_list(const struct select_segment *in, const struct accumulate_sums *list)
{
	const struct function_index_member *of = &in->index->members[in->index_member];
	struct indexed_sums *sums = in->sums;

	lock_take(&sums->lock);
	for (size_t i = 0; i < list->count; i++) {
		mean_wide value = list->list[i].value;
		int64_t *sum = &sums->before[of->stack_of_slot[list->list[i].stack]];

		sums->unsuited |= value < 0 || __builtin_add_overflow(*sum, value, sum);
	}
	lock_give(&sums->lock);
}

int indexed_sum(struct selection *selection, struct work *work, struct select_segment *in,
		bool together, uint64_t *ret_rows, struct err *err)
{
	struct accumulate_sums list = { 0 };
	struct arena scratch;
	int rc;

	assert(in->sums && in->index);
	arena_init(&scratch, work->limit_bytes);
	rc = accumulate_counts(selection, work, in, together, take_counters, in, &scratch, &list,
			       err);
	work->other_bytes += scratch.used_bytes;
	if (!rc)
		rc = work_check(work, err);
	if (!rc)
		take_list(in, &list);
	work->other_bytes -= scratch.used_bytes;
	arena_free(&scratch);
	*ret_rows = list.rows;
	return rc;
}

bool indexed_finish(struct indexed *indexed)
{
	bool suited = true;

	for (size_t i = 0; i < indexed->sums_count; i++) {
		struct indexed_sums *sums = &indexed->sums[i];
		const struct function_index *index = sums->index;
		const uint32_t *restrict rows = index->row_of_stack;
		int64_t *restrict before = sums->before, *restrict flats = sums->flats, total = 0;
		bool overflowed = false;

		for (uint32_t stack = 0; stack < index->stacks_count; stack++) {
			int64_t value = before[stack];

			before[stack] = total;
			overflowed |= __builtin_add_overflow(total, value, &total);
			flats[rows[stack]] += overflowed ? 0 : value;
		}
		before[index->stacks_count] = total;
		suited &= !sums->unsuited && !overflowed;
		indexed->selection->work->stats.nodes_merged += index->nodes_count;
	}
	return suited;
}
