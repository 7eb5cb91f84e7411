/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/query.h"

#include <assert.h>

#include "base/mem.h"
#include "server/query/shape/collapse.h"
#include "server/query/index/indexed.h"
#include "server/query/shape/rounding.h"
#include "server/query/shape/stacks.h"
#include "server/query/shape/table.h"
#include "server/query/shape/trim.h"

#define ABSENT_VALUE "(none)"

static struct slice join(struct arena *arena, const struct slice *parts, size_t count,
			 const char *empty)
{
	struct strbuf text = { 0 };
	struct slice united;

	assert(parts || !count);
	for (size_t i = 0; i < count; i++) {
		if (i)
			strbuf_add_byte(&text, ',');
		strbuf_add_slice(&text, parts[i].len ? parts[i] : slice_of(empty));
	}
	united = arena_copy(arena, strbuf_slice(&text));
	strbuf_free(&text);
	return united;
}

/* Reports may begin before the range, and end after it: the samples shown do not. */
static void cut_to_range(struct tree *tree, const struct query_params *params, int64_t end_ns)
{
	if (tree->start_ns < params->from_ns)
		tree->start_ns = params->from_ns;
	if (end_ns > params->to_ns)
		end_ns = params->to_ns;
	tree->duration_ns = end_ns > tree->start_ns ? end_ns - tree->start_ns : 0;
}

static void describe_query(struct tree *tree, const struct selection *selection)
{
	const struct query_params *params = selection->params;
	struct strbuf text = { 0 };

	selector_format(&text, params->selector);
	tree->query = arena_copy(&tree->arena, strbuf_slice(&text));
	strbuf_clear(&text);
	if (params->filters)
		filter_list_format(&text, params->filters);
	tree->filters = arena_copy(&tree->arena, strbuf_slice(&text));
	strbuf_free(&text);
	tree->type = profile_type_copy(&selection->type, &tree->arena);
	tree->period = selection->period;
	tree->from_ns = params->from_ns;
	tree->to_ns = params->to_ns;
	tree->start_ns = selection->start_ns;
	tree->report_ns = selection->report_ns;
	tree->reports = selection->reports_count;
	if (params->at_moment) {
		tree->from_ns = selection->start_ns;
		tree->to_ns = selection->end_ns;
	}
	if (selection->type.delta)
		tree->duration_ns = selection->duration_ns;
	tree->has_times = selection->has_times;
	if (selection->by_times && selection->reports_count)
		cut_to_range(tree, params, selection->end_ns);
}

static int describe_groups(struct tree *tree, const struct selection *selection, struct err *err)
{
	const struct query_params *params = selection->params;
	const struct groups *groups = &selection->groups;
	size_t names_count = params->group_by_count;
	struct arena *arena = &tree->arena;

	assert(selection->groups.count <= selection->groups.capacity);
	tree->groups = arena_new_array(arena, struct slice, groups->count);
	tree->group_names = arena_new_array(arena, struct slice, names_count);
	tree->group_values = arena_new_array(arena, struct slice, groups->count * names_count);
	tree->group_by = join(arena, params->group_by, names_count, "");
	if (!tree->groups || !tree->group_names || !tree->group_values)
		return work_over_budget(selection->work, err);
	for (size_t i = 0; i < names_count; i++)
		tree->group_names[i] = arena_copy(arena, params->group_by[i]);
	for (size_t group = 0; group < groups->count; group++) {
		const struct slice *values = groups->list[group].values;

		tree->groups[group] = join(arena, values, names_count, ABSENT_VALUE);
		for (size_t i = 0; i < names_count; i++)
			tree->group_values[group * names_count + i] = arena_copy(arena, values[i]);
	}
	tree->groups_count = (uint32_t)groups->count;
	tree->group_names_count = (uint32_t)names_count;
	return arena->over_budget ? work_over_budget(selection->work, err) : 0;
}

/* One function per group, by its id; NULL without group-by. */
static int name_groups(const struct tree *tree, struct work *work, struct name_table *names,
		       uint32_t **ret, struct err *err)
{
	uint32_t *ids = NULL;

	if (tree->group_names_count) {
		ids = arena_new_array(&work->arena, uint32_t, tree->groups_count);
		if (!ids)
			return work_over_budget(work, err);
	}
	for (uint32_t i = 0; ids && i < tree->groups_count; i++) {
		ids[i] = name_group(names, tree->groups[i]);
		if (ids[i] == IDMAP_NONE)
			return work_over_budget(work, err);
	}
	*ret = ids;
	return 0;
}

/* From merged tries to functions, in the cheapest way that says all that is wanted. */
static int make_functions(struct tree *tree, struct work *work, const struct query_params *params,
			  const struct merge *merge, struct name_table *names,
			  struct filter_apply *applied, bool diff, struct err *err)
{
	uint32_t *group_names = NULL;
	int rc;

	if (!diff && table_suffices(params, merge))
		return table_into(tree, work, merge, names, params->rows_limit, err);
	if (!diff && trim_suffices(params, merge))
		return trim_into(tree, work, merge, names, params->width_px, err);
	rc = name_groups(tree, work, names, &group_names, err);
	return rc ? rc
		  : collapse_into(tree, work, merge, names, applied, group_names, diff,
				  params->places, err);
}

/* What code without names costs, in CPU time, so that the costliest is looked for first. */
static void note_costs(const struct tree *tree, struct resolver *resolver)
{
	const struct profile_type *type = &tree->type;
	bool counts = !slice_is(type->sample_unit, "nanoseconds");
	bool is_time = type->delta && (!counts || slice_is(type->period_unit, "nanoseconds"));
	int64_t unit_ns = counts && tree->period > 0 ? tree->period : 1, of_ns;

	if (!resolver || !is_time || __builtin_mul_overflow(tree->total, unit_ns, &of_ns))
		return;
	for (uint32_t i = 0; i < tree->unresolved_count; i++) {
		const struct tree_unresolved *item = &tree->unresolved[i];

		if (item->build_id.len && item->leaf > 0 && item->leaf <= tree->total)
			resolver_note_cost(resolver, item->build_id,
					   (uint64_t)(item->leaf * unit_ns), (uint64_t)of_ns);
	}
}

static int build(struct tree *tree, struct work *work, const struct query_source *source,
		 const struct selection *selection, struct merge *merge, bool diff, struct err *err)
{
	struct name_table names;
	struct filter_apply applied;
	int rc = name_begin(&names, work, source->resolver, &tree->arena, err);

	assert(!merge->tries_count || merge->tries);
	names.demangle = selection->params->demangle;
	names.apart = selection->params->apart;
	describe_query(tree, selection);
	tree->samples_rows = merge->rows;
	if (!rc)
		rc = describe_groups(tree, selection, err);
	filter_apply_begin(&applied, work, selection->params->filters, &names);
	if (!rc && merge->is_exact)
		rc = rounding_apply(merge, work, &names, &applied,
				    tree->group_names_count ? tree->groups : NULL, diff, err);
	if (!rc)
		rc = make_functions(tree, work, selection->params, merge, &names, &applied, diff,
				    err);
	work_step_done(work, QUERY_STEP_NAME);
	if (!rc && !selection->params->nodes_only && !tree->rows && !diff && merge->tries_count)
		rc = stacks_into(tree, work, &merge->tries[0], &names, &applied, err);
	work_step_done(work, QUERY_STEP_STACKS);
	if (!rc)
		rc = unresolved_into(tree, &names.unresolved, err);
	if (!rc)
		note_costs(tree, source->resolver);
	if (!rc)
		rc = work_check(work, err);
	tree->names_pending = names.pending;
	name_end(&names);
	if (!rc && tree->arena.over_budget)
		rc = work_over_budget(work, err);
	if (!rc && !tree->rows)
		tree_check(tree);
	return rc;
}

/* The answer's memory goes on to count when the work's does not. */
static void keep_in_pool(struct tree *tree, struct query_pool *pool)
{
	assert(!tree->pool && !tree->pooled_bytes);
	if (!pool)
		return;
	tree->pool = pool;
	tree->pooled_bytes = tree->arena.used_bytes;
	atomic_fetch_add(&pool->used_bytes, tree->pooled_bytes);
}

/* Trees with stacks need them once each; a trimmed one does not mind how often. */
static enum merge_how how_to_merge(const struct query_params *params)
{
	if (!params->nodes_only)
		return MERGE_AS_ONE;
	return trim_is_wanted(params) ? MERGE_APART : MERGE_BY_PARTITION_KEY;
}

/*
 * Tables are made of indexes where there are some; *indexes: with them. It is cleared, and nothing
 * returned, when the values turn out to need the tries.
 */
static int merge_and_build(const struct query_source *source, struct selection *selection,
			   struct tree *tree, bool *indexes, struct err *err)
{
	const struct query_params *params = selection->params;
	struct work *work = selection->work;
	struct indexed indexed = { 0 };
	struct merge merge = { 0 };
	bool again = false;
	int rc = *indexes ? indexed_begin(&indexed, selection, source, err) : 0;

	if (!rc)
		rc = merge_segments(selection, how_to_merge(params), &merge, err);
	merge.indexed = indexed.sums;
	merge.indexed_count = indexed.sums_count;
	if (!rc && merge.indexed_count)
		again = !indexed_finish(&indexed) || !table_suffices(params, &merge);
	work_step_done(work, QUERY_STEP_SUM);
	if (!rc && !again)
		rc = build(tree, work, source, selection, &merge, false, err);
	*indexes = !again;
	merge_free(&merge);
	indexed_end(&indexed);
	return rc;
}

static int try_tree(const struct query_source *source, const struct query_params *params,
		    bool *indexes, struct tree **ret, struct err *err)
{
	struct selection selection;
	struct work work;
	struct tree *tree;
	int rc;

	assert(params->selector && params->selector->has_type);
	assert(params->group_by_count <= QUERY_GROUP_BY_MAX);
	work_begin(&work, &params->limits);
	tree = mem_new(struct tree);
	arena_init(&tree->arena, work.limit_bytes);
	work.answer = &tree->arena;
	rc = select_make(&selection, &work, source, params, (struct select_use){ 0 }, err);
	work_step_done(&work, QUERY_STEP_SELECT);
	if (!rc)
		rc = merge_and_build(source, &selection, tree, indexes, err);
	tree->stats = work_stats(&work);
	work_end(&work);
	keep_in_pool(tree, params->limits.pool);
	if (rc || !*indexes)
		tree_free(tree);
	else
		*ret = tree;
	return rc;
}

int query_tree(const struct query_source *source, const struct query_params *params,
	       struct tree **ret, struct err *err)
{
	size_t unreadable = 0;
	bool indexes = true;
	int rc;

	assert(source->segments || !source->segments_count);
	assert(params->spans || !params->spans_count);
	assert(params->links || !params->links_count);
	if (!params->selector->has_type)
		return err_set(err, ERR_INVALID, "query: the selector names no profile type");
	if (params->group_by_count > QUERY_GROUP_BY_MAX)
		return err_set(err, ERR_LIMIT, "query: group by at most %d labels",
			       QUERY_GROUP_BY_MAX);
	do {
		rc = try_tree(source, params, &indexes, ret, err);
		if (!rc && !indexes)
			rc = try_tree(source, params, &indexes, ret, err);
	} while (work_again(source, rc, &unreadable));
	if (!rc)
		(*ret)->parts_unreadable = unreadable;
	return rc;
}

/* One of the two trees, merged, before names. */
struct side {
	const struct query_source *source;
	const struct query_params *params;
	struct selection selection;
	struct merge merge;
};

static int merge_side(struct side *side, struct work *work, struct err *err)
{
	int rc = select_make(&side->selection, work, side->source, side->params,
			     (struct select_use){ 0 }, err);

	work_step_done(work, QUERY_STEP_SELECT);
	if (!rc)
		rc = merge_segments(&side->selection, MERGE_BY_PARTITION_KEY, &side->merge, err);
	work_step_done(work, QUERY_STEP_SUM);
	return rc;
}

/* Adds the values of a trie to that of both sides, as a group. `exact`: by value of both, or NULL.
 */
static int join_trie(struct work *work, const struct merge_trie *from, uint32_t group,
		     struct merge_trie *both, mean_wide *exact, struct err *err)
{
	size_t count = from->values_count;
	struct accumulate_sum *sums = arena_new_array(&work->arena, struct accumulate_sum, count);
	int rc;

	assert(from->values || !from->values_count);
	assert(group < 2);
	if (!sums)
		return work_over_budget(work, err);
	for (size_t i = 0; i < count; i++)
		sums[i] = (struct accumulate_sum){ .stack = from->values[i].stack };
	rc = trie_add(&both->own, work, &from->view, sums, count, err);
	for (size_t i = 0; !rc && i < count; i++) {
		if (exact)
			exact[both->values_count] =
				from->exact ? from->exact[i] : from->values[i].value;
		both->values[both->values_count++] =
			(struct merge_value){ sums[i].stack, group, from->values[i].value };
	}
	return rc;
}

static size_t values_count(const struct merge *merge)
{
	size_t count = 0;

	for (size_t i = 0; i < merge->tries_count; i++)
		count += merge->tries[i].values_count;
	return count;
}

static int join_sides(struct work *work, const struct side *base, const struct side *side,
		      struct merge *ret, struct err *err)
{
	size_t count = values_count(&base->merge) + values_count(&side->merge);
	struct merge_trie *both = arena_new_array(&work->arena, struct merge_trie, 1);
	mean_wide *exact = NULL;
	int rc = 0;

	if (!both)
		return work_over_budget(work, err);
	*ret = (struct merge){ .tries = both,
			       .rows = base->merge.rows + side->merge.rows,
			       .is_exact = base->merge.is_exact || side->merge.is_exact,
			       .denominator = side->merge.denominator,
			       .base_denominator = base->merge.denominator };
	trie_init(&both->own);
	ret->tries_count = 1;
	both->values = arena_new_array(&work->arena, struct merge_value, count);
	if (ret->is_exact)
		both->exact = exact = arena_new_array(&work->arena, mean_wide, count);
	if (!both->values || (ret->is_exact && !exact))
		return work_over_budget(work, err);
	for (size_t i = 0; !rc && i < side->merge.tries_count; i++)
		rc = join_trie(work, &side->merge.tries[i], 0, both, exact, err);
	for (size_t i = 0; !rc && i < base->merge.tries_count; i++)
		rc = join_trie(work, &base->merge.tries[i], 1, both, exact, err);
	if (!rc)
		trie_finish(&both->own, &both->view);
	return rc;
}

static void describe_base(struct tree *tree, const struct side *base)
{
	struct strbuf text = { 0 };

	assert(base->params && base->params->selector);
	selector_format(&text, base->params->selector);
	tree->base_query = arena_copy(&tree->arena, strbuf_slice(&text));
	strbuf_free(&text);
	tree->reports += base->selection.reports_count;
	if (base->selection.type.delta)
		tree->base_duration_ns = base->selection.duration_ns;
}

static int check_sides(const struct side *base, const struct side *side, struct err *err)
{
	if (slice_equal(base->selection.type.sample_unit, side->selection.type.sample_unit))
		return 0;
	return err_set(err, ERR_INVALID, "query: a diff of %.*s and %.*s says nothing",
		       SLICE_FMT(base->selection.type.sample_unit),
		       SLICE_FMT(side->selection.type.sample_unit));
}

static int try_diff(const struct query_source *base_source, const struct query_params *base_params,
		    const struct query_source *source, const struct query_params *params,
		    struct tree **ret, struct err *err)
{
	struct side base = { .source = base_source, .params = base_params };
	struct side side = { .source = source, .params = params };
	struct tree *tree = mem_new(struct tree);
	struct merge both = { 0 };
	struct work work;
	int rc;

	work_begin(&work, &params->limits);
	arena_init(&tree->arena, work.limit_bytes);
	work.answer = &tree->arena;
	rc = merge_side(&base, &work, err);
	if (!rc)
		rc = merge_side(&side, &work, err);
	if (!rc)
		rc = check_sides(&base, &side, err);
	if (!rc)
		rc = join_sides(&work, &base, &side, &both, err);
	if (!rc)
		rc = build(tree, &work, source, &side.selection, &both, true, err);
	if (!rc)
		describe_base(tree, &base);
	tree->stats = work_stats(&work);
	merge_free(&base.merge);
	merge_free(&side.merge);
	merge_free(&both);
	work_end(&work);
	keep_in_pool(tree, params->limits.pool);
	if (rc)
		tree_free(tree);
	else
		*ret = tree;
	return rc;
}

int query_diff(const struct query_source *base_source, const struct query_params *base,
	       const struct query_source *source, const struct query_params *params,
	       struct tree **ret, struct err *err)
{
	size_t unreadable = 0, base_unreadable = 0;
	bool again;
	int rc;

	assert(base->selector && params->selector);
	if (!params->selector->has_type || !base->selector->has_type)
		return err_set(err, ERR_INVALID, "query: the selector names no profile type");
	if (params->group_by_count || base->group_by_count)
		return err_set(err, ERR_UNSUPPORTED, "query: a diff cannot be grouped");
	do {
		rc = try_diff(base_source, base, source, params, ret, err);
		again = work_again(base_source, rc, &base_unreadable);
		again |= work_again(source, rc, &unreadable);
	} while (again);
	if (!rc)
		(*ret)->parts_unreadable = unreadable + base_unreadable;
	return rc;
}
