/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/indexed.h"

#include "base/clock.h"
#include "base/mem.h"
#include "server/resolve/resolver.h"

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

static int make_index(struct indexed *indexed, struct selection *selection,
		      struct select_segment *in, const struct query_source *source,
		      uint64_t question, const struct index_cache_key *key, struct err *err)
{
	struct work *work = selection->work;
	struct function_index *index = NULL;
	int rc = work_load_stacks(work, in->segment, err);

	if (rc)
		return work_spare(in->segment, rc);
	rc = function_index_make(in->segment, source->resolver, selection->params, &index, err);
	work_drop_stacks(work, in->segment);
	if (index) {
		work->stats.indexes_made++;
		index_cache_put(indexed->cache, question, key, index);
	}
	in->index = index;
	return rc == -ERR_NO_MEMORY ? 0 : rc; /* it goes without */
}

/* Memory for the sums of all indexed segments. */
static int make_room(struct indexed *indexed, struct selection *selection, struct err *err)
{
	struct work *work = selection->work;
	size_t count = 0, at = 0;
	int rc;

	for (size_t i = 0; i < indexed->used_count; i++)
		count += indexed->used[i]->flat_rows_count + indexed->used[i]->stacks_count + 2ull;
	if (!count)
		return 0;
	indexed->work = work;
	indexed->room_bytes = count * sizeof(*indexed->room);
	work->other_bytes += indexed->room_bytes;
	rc = work_check(work, err);
	if (rc)
		return rc;
	indexed->room = index_cache_take_room(indexed->cache, indexed->room_bytes);
	for (size_t i = 0; i < selection->segments_count; i++) {
		struct select_segment *in = &selection->segments[i];

		if (!in->index)
			continue;
		in->sums = arena_new(&work->arena, struct indexed_sums);
		if (!in->sums)
			return work_over_budget(work, err);
		*in->sums =
			(struct indexed_sums){ .index = in->index, .flats = &indexed->room[at] };
		at += in->index->flat_rows_count + 1ull;
		in->sums->before = &indexed->room[at];
		at += in->index->stacks_count + 1ull;
	}
	return 0;
}

int indexed_begin(struct indexed *indexed, struct selection *selection,
		  const struct query_source *source, struct err *err)
{
	struct index_cache_key key = { .demangle = selection->params->demangle };
	uint64_t question;
	int rc = 0;

	*indexed = (struct indexed){ .cache = source->indexes };
	if (!is_served(selection, source))
		return 0;
	key.version = source->resolver ? resolver_version(source->resolver) : 0;
	question = index_cache_begin(indexed->cache);
	indexed->used = arena_new_array(&selection->work->arena, const struct function_index *,
					selection->segments_count);
	if (!indexed->used)
		return work_over_budget(selection->work, err);
	for (size_t i = 0; !rc && i < selection->segments_count; i++) {
		struct select_segment *in = &selection->segments[i];
		bool make, look;

		if (!in->blocks_count || !in->segment->ops || !in->segment->id)
			continue;
		key.segment = in->segment->id;
		in->index = index_cache_get(indexed->cache, question, &key,
					    function_index_bytes_about(in->segment), &make, &look);
		if (look && source->resolver)
			look_again(in->index, source->resolver);
		if (make)
			rc = make_index(indexed, selection, in, source, question, &key, err);
		if (in->index) {
			indexed->used[indexed->used_count++] = in->index;
			selection->work->stats.indexes_used++;
		}
	}
	return rc ? rc : make_room(indexed, selection, err);
}

void indexed_end(struct indexed *indexed)
{
	for (size_t i = 0; i < indexed->used_count; i++)
		index_cache_release(indexed->cache, indexed->used[i]);
	indexed->used_count = 0;
	if (!indexed->work)
		return;
	index_cache_give_room(indexed->cache, indexed->room, indexed->room_bytes);
	indexed->work->other_bytes -= indexed->room_bytes;
}

/* The usual case: each row counts one. Below 2^31 slots, 63 bits hold all. */
static void sum_ones(struct indexed_sums *sums, const uint32_t *restrict counters)
{
	const struct function_index *index = sums->index;
	const uint32_t *restrict rows = index->row_of_stack, *restrict slots = index->slot_of_stack;
	int64_t *restrict flats = sums->flats, *restrict before = sums->before, total = 0;

	for (uint32_t stack = 0; stack < index->stacks_count; stack++) {
		uint32_t value = counters[slots[stack]];

		before[stack] = total;
		total += value;
		flats[rows[stack]] += value;
	}
	before[index->stacks_count] = total;
}

static int64_t counted(const struct accumulate_counters *counters, size_t count, uint32_t slot)
{
	int64_t value = 0;

	for (size_t i = 0; i < count; i++) {
		if (counters[i].ones)
			value = work_add(value, counters[i].ones[slot]);
		if (counters[i].plain)
			value = work_add(value, counters[i].plain[slot]);
	}
	return value;
}

/* An accumulate_take_f: the counters of one segment. */
static int take_counters(void *context, struct work *work,
			 const struct accumulate_counters *counters, size_t count, int64_t weight,
			 struct err *err)
{
	struct indexed_sums *sums = context;
	const struct function_index *index = sums->index;
	int64_t total = 0;

	if (count == 1 && counters->ones && !counters->plain && weight == 1) {
		sum_ones(sums, counters->ones);
		return work_check(work, err);
	}
	for (uint32_t stack = 0; stack < index->stacks_count; stack++) {
		int64_t value = counted(counters, count, index->slot_of_stack[stack]);

		sums->before[stack] = total;
		sums->unsuited |= value < 0 || __builtin_mul_overflow(value, weight, &value) ||
				  __builtin_add_overflow(total, value, &total);
		sums->flats[index->row_of_stack[stack]] += sums->unsuited ? 0 : value;
	}
	sums->before[index->stacks_count] = total;
	return work_check(work, err);
}

/* The same of a list. */
static int take_list(struct indexed_sums *sums, struct work *work, struct arena *scratch,
		     const struct accumulate_sums *list, struct err *err)
{
	int64_t *values = arena_new_array(scratch, int64_t, sums->index->stacks_count);
	const struct accumulate_counters counters = { .plain = values };

	if (!values)
		return work_over_budget(work, err);
	for (size_t i = 0; i < list->count; i++) {
		sums->unsuited |= list->list[i].value != (int64_t)list->list[i].value;
		values[list->list[i].stack] = (int64_t)list->list[i].value;
	}
	return take_counters(sums, work, &counters, 1, 1, err);
}

int indexed_sum(struct selection *selection, struct work *work, struct select_segment *in,
		bool together, uint64_t *ret_rows, struct err *err)
{
	struct accumulate_sums list = { 0 };
	struct arena scratch;
	int rc;

	arena_init(&scratch, work->limit_bytes);
	rc = accumulate_counts(selection, work, in, together, take_counters, in->sums, &scratch,
			       &list, err);
	work->other_bytes += scratch.used_bytes;
	if (!rc)
		rc = work_check(work, err);
	if (!rc && list.count)
		rc = take_list(in->sums, work, &scratch, &list, err);
	work->other_bytes -= scratch.used_bytes;
	arena_free(&scratch);
	work->stats.nodes_merged += in->index->nodes_count;
	*ret_rows = list.rows;
	return rc;
}
