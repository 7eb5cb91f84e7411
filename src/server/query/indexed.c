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

/* Zeroed memory for the sums of all indexed segments; one piece, so that pages can be large. */
static bool make_room(struct indexed *indexed, struct selection *selection)
{
	size_t count = 0, at = 0;
	int64_t *room;

	for (size_t i = 0; i < indexed->used_count; i++)
		count += indexed->used[i]->flat_rows_count + indexed->used[i]->stacks_count + 2ull;
	room = arena_new_array(&selection->work->arena, int64_t, count);
	if (!room)
		return false;
	mem_prefer_huge_pages(room, count * sizeof(*room));
	for (size_t i = 0; i < selection->segments_count; i++) {
		struct select_segment *in = &selection->segments[i];

		if (!in->index)
			continue;
		in->sums = arena_new(&selection->work->arena, struct indexed_sums);
		if (!in->sums)
			return false;
		*in->sums = (struct indexed_sums){ .index = in->index, .flats = &room[at] };
		at += in->index->flat_rows_count + 1ull;
		in->sums->before = &room[at];
		at += in->index->stacks_count + 1ull;
	}
	return true;
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
	if (!rc && !make_room(indexed, selection))
		rc = work_over_budget(selection->work, err);
	return rc;
}

void indexed_end(struct indexed *indexed)
{
	for (size_t i = 0; i < indexed->used_count; i++)
		index_cache_release(indexed->cache, indexed->used[i]);
	indexed->used_count = 0;
}

/* What is added to the sums of a segment, one slot at a time. */
static bool add_slot(struct indexed_sums *sums, uint32_t slot, int64_t value)
{
	if (value < 0 || __builtin_add_overflow(sums->total, value, &sums->total))
		return false;
	sums->flats[sums->index->row_of_slot[slot]] += value;
	sums->before[sums->index->stack_of_slot[slot]] = value;
	return true;
}

static void sum_up(struct indexed_sums *sums)
{
	int64_t so_far = 0;

	for (uint32_t i = 0; i <= sums->index->stacks_count; i++) {
		int64_t value = sums->before[i];

		sums->before[i] = so_far;
		so_far += value;
	}
}

/* An accumulate_take_f: the counters of one segment. */
static int take_counters(void *context, struct work *work,
			 const struct accumulate_counters *counters, size_t count, int64_t weight,
			 struct err *err)
{
	struct indexed_sums *sums = context;

	for (uint32_t slot = 0; slot < sums->index->slots_count; slot++) {
		int64_t value = 0;

		for (size_t i = 0; i < count; i++) {
			if (counters[i].ones)
				value = work_add(value, counters[i].ones[slot]);
			if (counters[i].plain)
				value = work_add(value, counters[i].plain[slot]);
		}
		if (!value)
			continue;
		sums->unsuited |= __builtin_mul_overflow(value, weight, &value) ||
				  value == INT64_MAX || !add_slot(sums, slot, value);
	}
	sum_up(sums);
	return work_check(work, err);
}

int indexed_sum(struct selection *selection, struct work *work, struct select_segment *in,
		bool together, uint64_t *ret_rows, struct err *err)
{
	struct accumulate_sums list = { 0 };
	struct indexed_sums *sums = in->sums;
	struct arena scratch;
	int rc;

	arena_init(&scratch, work->limit_bytes);
	rc = accumulate_counts(selection, work, in, together, take_counters, sums, &scratch, &list,
			       err);
	work->other_bytes += scratch.used_bytes;
	if (!rc)
		rc = work_check(work, err);
	for (size_t i = 0; !rc && i < list.count; i++) {
		const struct accumulate_sum *sum = &list.list[i];

		sums->unsuited |=
			sum->value > INT64_MAX || !add_slot(sums, sum->stack, (int64_t)sum->value);
	}
	if (list.count)
		sum_up(sums);
	work->other_bytes -= scratch.used_bytes;
	arena_free(&scratch);
	work->stats.nodes_merged += in->index->nodes_count;
	*ret_rows = list.rows;
	return rc;
}
