/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/diff/compare.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "server/query/diff/interrupts.h"
#include "server/query/significance/student.h"

#define STEPS_WANTED 1000
#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define DAY_NS (24 * HOUR_NS)

/* A run of steps. */
struct block {
	int64_t from_ns, to_ns;
	double per_second;
};

struct series_ids {
	uint64_t *list;
	size_t count, capacity;
};

struct comparing {
	struct tree *tree;
	struct comparison *result;
	struct idmap names; /* rows of result->functions */
	struct block blocks[COMPARISON_BLOCKS_MAX];
	size_t blocks_count;
	double *parts; /* like result->tests: of one group of series, the difference and the sum */
};

static int64_t whole_up(int64_t ns, int64_t grain_ns)
{
	return (ns + grain_ns - 1) / grain_ns * grain_ns;
}

int64_t compare_step(int64_t from_ns, int64_t to_ns, int64_t report_ns)
{
	int64_t range_ns, step_ns;

	if (report_ns <= 0 || report_ns > DAY_NS)
		report_ns = COMPARE_REPORT_NS;
	if (__builtin_sub_overflow(to_ns, from_ns, &range_ns) || range_ns > INT64_MAX / 2)
		range_ns = INT64_MAX / 2;
	step_ns = whole_up(range_ns / STEPS_WANTED + 1, report_ns);
	if (step_ns > DAY_NS / 4)
		return whole_up(step_ns, DAY_NS);
	return step_ns > HOUR_NS / 4 ? whole_up(step_ns, HOUR_NS) : step_ns;
}

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Steps with reports, in order, dealt out to the blocks evenly. */
static void cut(struct comparing *comparing, const struct query_params *params,
		const struct query_series_set *set)
{
	const struct query_series *line = set->series;
	size_t points = set->series_count ? line->points_count : 0;
	size_t count = points < COMPARISON_BLOCKS_MAX ? points : COMPARISON_BLOCKS_MAX;

	assert(comparing->blocks_count <= COMPARISON_BLOCKS_MAX);
	for (size_t i = 0; i < count; i++) {
		size_t first = i * points / count, end = (i + 1) * points / count;
		struct block *block = &comparing->blocks[i];

		block->from_ns = at_least(line->points[first].at_ns, params->from_ns);
		block->to_ns = at_most(line->points[end - 1].at_ns + set->step_ns, params->to_ns);
		block->per_second = 0;
		for (size_t at = first; at < end; at++)
			block->per_second += line->points[at].per_second / (double)(end - first);
	}
	comparing->blocks_count = count;
}

/* A side over time, whatever its filters hide: all of it together, or series by series. */
static int ask_series(const struct compare_side *side, bool sum_all, int64_t report_ns,
		      struct query_series_set *ret, struct err *err)
{
	struct query_range_params range = { .base = *side->params, .sum_all = sum_all };

	range.base.filters = NULL;
	range.step_ns = compare_step(range.base.from_ns, range.base.to_ns, report_ns);
	return query_series(side->source, &range, ret, err);
}

static int find_blocks(struct comparing *comparing, const struct compare_side *side,
		       int64_t report_ns, struct err *err)
{
	struct query_series_set set;
	int rc = ask_series(side, true, report_ns, &set, err);

	if (rc)
		return rc;
	cut(comparing, side->params, &set);
	query_series_free(&set);
	return 0;
}

static bool name_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(((const struct functions *)context)->rows[id].name,
			   *(const struct slice *)key);
}

static uint32_t find_row(const struct comparing *comparing, struct slice name)
{
	return idmap_find(&comparing->names, hash_bytes(name.data, name.len), name_equal,
			  &comparing->result->functions, &name);
}

static void add_value(struct significance_test *test, enum significance_side side, int64_t value,
		      double total)
{
	test->value[side] += (double)value;
	test->spread[side] += (double)value * (double)value / total;
}

/* What one block says of each function. */
static void add_block(struct comparing *comparing, enum significance_side side,
		      const struct tree *tree)
{
	struct comparison *result = comparing->result;
	double total = (double)tree->total + (double)tree->filtered;
	struct functions functions;

	assert(side < SIGNIFICANCE_SIDES);
	if (total <= 0)
		return;
	functions_make(&functions, tree);
	for (uint32_t i = 0; i < functions.rows_count; i++) {
		const struct functions_row *row = &functions.rows[i];
		uint32_t id = find_row(comparing, row->name);
		struct significance_test *tests;

		if (id == IDMAP_NONE)
			continue;
		tests = &result->tests[(size_t)id * COMPARISON_WHATS];
		add_value(&tests[COMPARISON_SELF], side, row->value.flat, total);
		add_value(&tests[COMPARISON_TOTAL], side, row->value.cum, total);
	}
	functions_free(&functions);
	result->of.total[side] += total;
	result->of.blocks[side]++;
}

static int add_side(struct comparing *comparing, enum significance_side number,
		    const struct compare_side *side, int64_t report_ns, struct err *err)
{
	struct comparison *result = comparing->result;
	struct query_params params = *side->params;
	int rc = find_blocks(comparing, side, report_ns, err);

	assert(number < SIGNIFICANCE_SIDES);
	params.nodes_only = true;
	for (size_t i = 0; !rc && i < comparing->blocks_count; i++) {
		const struct block *block = &comparing->blocks[i];
		struct tree *tree;

		params.from_ns = block->from_ns;
		params.to_ns = block->to_ns;
		rc = query_tree(side->source, &params, &tree, err);
		if (rc)
			break;
		add_block(comparing, number, tree);
		result->rates[number][i] = block->per_second;
		result->block_ns[number] =
			at_least(result->block_ns[number], block->to_ns - block->from_ns);
		tree_free(tree);
	}
	result->rate.values[number] = result->rates[number];
	result->rate.count[number] = comparing->blocks_count;
	return rc;
}

/* How much the series of one side say of each test: its part in the difference of shares. */
static void add_part(struct comparing *comparing, enum significance_side side,
		     const struct tree *tree)
{
	struct comparison *result = comparing->result;
	const double all = result->of.total[side], sign = side == SIGNIFICANCE_BASE ? -1 : 1;
	const double total = (double)tree->total + (double)tree->filtered;
	const size_t count = (size_t)result->functions.rows_count * COMPARISON_WHATS;
	struct functions functions;

	assert(side < SIGNIFICANCE_SIDES);
	if (!(total > 0))
		return;
	for (size_t i = 0; i < count; i++)
		comparing->parts[2 * i] -=
			sign * result->tests[i].value[side] / all * (total / all);
	functions_make(&functions, tree);
	for (uint32_t i = 0; i < functions.rows_count; i++) {
		const struct functions_row *row = &functions.rows[i];
		uint32_t id = find_row(comparing, row->name);
		double *parts;

		if (id == IDMAP_NONE)
			continue;
		parts = &comparing->parts[(size_t)id * COMPARISON_WHATS * 2];
		parts[2 * COMPARISON_SELF] += sign * (double)row->value.flat / all;
		parts[2 * COMPARISON_SELF + 1] += (double)row->value.flat / all;
		parts[2 * COMPARISON_TOTAL] += sign * (double)row->value.cum / all;
		parts[2 * COMPARISON_TOTAL + 1] += (double)row->value.cum / all;
	}
	functions_free(&functions);
}

static void end_part(struct comparing *comparing, const bool has[static SIGNIFICANCE_SIDES])
{
	struct comparison *result = comparing->result;
	const size_t count = (size_t)result->functions.rows_count * COMPARISON_WHATS;

	for (size_t i = 0; i < count; i++) {
		double *part = &comparing->parts[2 * i];

		result->tests[i].series_squares += part[0] * part[0];
		result->tests[i].series_weights += part[1] * part[1];
		part[0] = part[1] = 0;
	}
	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		result->of.series[side] += has[side];
	result->of.series_both += has[SIGNIFICANCE_BASE] && has[SIGNIFICANCE_OTHER];
}

static int ask_parts(struct comparing *comparing,
		     const struct compare_side sides[static SIGNIFICANCE_SIDES],
		     struct series_part *part, struct err *err)
{
	for (part->part = 0; part->part < part->parts; part->part++) {
		bool has[SIGNIFICANCE_SIDES] = { false };

		for (int side = 0; side < SIGNIFICANCE_SIDES; side++) {
			struct query_params params = *sides[side].params;
			struct tree *tree;
			int rc;

			params.nodes_only = true;
			params.part = part;
			rc = query_tree(sides[side].source, &params, &tree, err);
			if (rc)
				return rc;
			has[side] = tree->total + tree->filtered > 0;
			add_part(comparing, (enum significance_side)side, tree);
			tree_free(tree);
		}
		end_part(comparing, has);
	}
	return 0;
}

static int id_order(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The series of a side, behind those that are there; more than can be listed: none. */
static int list_series(const struct compare_side *side, struct series_ids *ids, struct err *err)
{
	struct query_series_set set;
	int rc = ask_series(side, false, DAY_NS, &set, err);

	if (rc)
		return rc == -ERR_LIMIT ? 0 : rc;
	for (size_t i = 0; i < set.series_count; i++) {
		mem_grow(ids->list, ids->count, ids->capacity);
		ids->list[ids->count++] = series_part_id(&set.series[i]);
	}
	query_series_free(&set);
	return 0;
}

static size_t sort_ids(uint64_t *ids, size_t count)
{
	size_t kept = 0;

	assert(ids || !count);
	if (count)
		qsort(ids, count, sizeof(*ids), id_order);
	for (size_t i = 0; i < count; i++)
		if (!kept || ids[kept - 1] != ids[i])
			ids[kept++] = ids[i];
	return kept;
}

/* How series differ from each other, when there are several. */
static int add_series(struct comparing *comparing,
		      const struct compare_side sides[static SIGNIFICANCE_SIDES], struct err *err)
{
	const size_t count = (size_t)comparing->result->functions.rows_count * COMPARISON_WHATS;
	struct series_ids ids = { 0 };
	struct series_part part = { 0 };
	bool several = true;
	int rc = 0;

	for (int side = 0; !rc && side < SIGNIFICANCE_SIDES; side++) {
		size_t before = ids.count;

		rc = list_series(&sides[side], &ids, err);
		several &= ids.count > before + 1 && comparing->result->of.total[side] > 0;
	}
	part.ids = ids.list;
	part.ids_count = sort_ids(ids.list, ids.count);
	part.parts = (uint32_t)(part.ids_count < COMPARE_SERIES_MAX ? part.ids_count
								    : COMPARE_SERIES_MAX);
	if (!rc && several) {
		comparing->parts = mem_new_array(double, 2 * count);
		rc = ask_parts(comparing, sides, &part, err);
		free(comparing->parts);
	}
	free(ids.list);
	return rc;
}

double compare_samples_per_value(const struct profile_type *type, int64_t period)
{
	if (!type->delta)
		return 0;
	if (slice_is(type->sample_unit, "count"))
		return 1;
	if (period > 0 && slice_equal(type->sample_unit, type->period_unit) &&
	    slice_is(type->sample_unit, "nanoseconds"))
		return 1 / (double)period;
	return 0;
}

static void map_names(struct comparing *comparing)
{
	const struct functions *functions = &comparing->result->functions;

	for (uint32_t i = 0; i < functions->rows_count; i++) {
		struct slice name = functions->rows[i].name;

		idmap_add(&comparing->names, hash_bytes(name.data, name.len), i);
	}
}

static void compare_rates(struct comparison *result, const struct tree *tree)
{
	const double seconds[SIGNIFICANCE_SIDES] = {
		(double)tree->base_duration_ns / CLOCK_NS_PER_S,
		(double)tree->duration_ns / CLOCK_NS_PER_S,
	};
	double samples[SIGNIFICANCE_SIDES];

	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		samples[side] = result->of.total[side] * result->of.samples_per_value;
	if (result->of.method == SIGNIFICANCE_BLOCKS)
		significance_compare_means(&result->rate);
	else if (result->of.method == SIGNIFICANCE_COUNTS)
		significance_compare_counts(&result->rate, samples, seconds);
}

/* What stands in the tree, before any block is looked at; *ret_count tests. */
static void begin(struct comparing *comparing, struct tree *tree, size_t *ret_count)
{
	struct comparison *result = mem_new(struct comparison);

	comparing->tree = tree;
	comparing->result = result;
	functions_make(&result->functions, tree);
	*ret_count = (size_t)result->functions.rows_count * COMPARISON_WHATS;
	result->tests = mem_new_array(struct significance_test, *ret_count);
	result->of.samples_per_value = compare_samples_per_value(&tree->type, tree->period);
	map_names(comparing);
}

static bool in_whole_reports(const struct query_params *params)
{
	return !params->at_moment && !params->spans_count && !params->by_times;
}

/* How far the mean of values per second may be off, relative to it. */
static void bound_rate(struct significance_mean *rate)
{
	const double *values = rate->values[SIGNIFICANCE_OTHER];
	size_t count = rate->count[SIGNIFICANCE_OTHER];
	double sum = 0, squares = 0, mean, bound;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	rate->tested = count >= SIGNIFICANCE_BLOCKS_MIN && sum > 0;
	if (!rate->tested)
		return;
	mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	bound = student_bound(SIGNIFICANCE_OUTSIDE, (double)(count - 1)) *
		sqrt(squares / (double)(count - 1) / (double)count) / mean;
	rate->mean[SIGNIFICANCE_OTHER] = mean;
	rate->low = fmax(-1, -bound);
	rate->high = bound;
}

/* The names were for gathering; of what failed nothing is kept. */
static int gathered(struct comparing *comparing, int rc)
{
	idmap_free(&comparing->names);
	if (rc)
		comparison_free(comparing->result);
	return rc;
}

int compare_intervals(struct tree *tree, const struct compare_side *side, int64_t report_ns,
		      struct err *err)
{
	struct comparing comparing = { 0 };
	struct comparison *result;
	size_t count;
	int rc = 0;

	assert(side->source && side->params);
	begin(&comparing, tree, &count);
	result = comparing.result;
	if (!in_whole_reports(side->params))
		result->of.samples_per_value = 0;
	if (result->of.samples_per_value > 0)
		rc = add_side(&comparing, SIGNIFICANCE_OTHER, side, report_ns, err);
	rc = gathered(&comparing, rc);
	if (rc)
		return rc;
	significance_intervals(&result->of, result->tests, count);
	bound_rate(&result->rate);
	tree->intervals = result;
	return 0;
}

/* What the host does when it interrupts the program is no change of the program. */
static void leave_interrupts_out(struct comparison *result, const struct tree *tree)
{
	bool *interrupts = interrupts_find(tree, &result->functions);

	for (uint32_t i = 0; i < result->functions.rows_count; i++)
		for (int what = 0; interrupts[i] && what < COMPARISON_WHATS; what++)
			result->tests[(size_t)i * COMPARISON_WHATS + (size_t)what] =
				(struct significance_test){ 0 };
	free(interrupts);
}

int compare(struct tree *tree, const struct compare_side sides[static SIGNIFICANCE_SIDES],
	    int64_t report_ns, struct err *err)
{
	struct comparing comparing = { 0 };
	struct comparison *result;
	size_t count;
	int rc = 0;

	assert(tree->base);
	begin(&comparing, tree, &count);
	result = comparing.result;
	if (sides[0].params->at_moment || sides[1].params->at_moment)
		result->of.samples_per_value = 0;
	for (int side = 0; !rc && side < SIGNIFICANCE_SIDES; side++)
		if (result->of.samples_per_value > 0)
			rc = add_side(&comparing, (enum significance_side)side, &sides[side],
				      report_ns, err);
	if (!rc && result->of.samples_per_value > 0)
		rc = add_series(&comparing, sides, err);
	rc = gathered(&comparing, rc);
	if (rc)
		return rc;
	leave_interrupts_out(result, tree);
	significance_judge(&result->of, result->tests, count);
	compare_rates(result, tree);
	tree->comparison = result;
	return 0;
}
