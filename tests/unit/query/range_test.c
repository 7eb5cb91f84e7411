/* SPDX-License-Identifier: Apache-2.0 */
/* Time series and catalogues by hand: buckets, edges, lines, limits, lists. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"

#define S CLOCK_NS_PER_S
#define HEAP "memory:inuse_space:bytes:space:bytes"

static int set_up(void **state)
{
	*state = malloc(sizeof(struct world));
	world_init(*state, 2);
	return 0;
}

static int tear_down(void **state)
{
	world_free(*state);
	free(*state);
	return 0;
}

static void add(struct tables *tables, const char *type, const char *labels, int64_t start_ns,
		int64_t value)
{
	world_report(tables, world_series(tables, type, 10, labels), start_ns, S);
	world_row(tables, "main", "", value);
}

static int ask(struct world *world, const char *text, struct query_range_params *params,
	       struct query_series_set *set, struct err *err)
{
	struct query_source source = world_source(world);
	struct selector selector;
	int rc;

	assert_int_equal(selector_parse(slice_of(text), &selector, NULL), 0);
	params->base.selector = &selector;
	rc = query_series(&source, params, set, err);
	selector_free(&selector);
	return rc;
}

static void expect_point(const struct query_series *series, size_t at, int64_t at_ns, int64_t value,
			 double per_second, uint32_t reports)
{
	assert_true(at < series->points_count);
	assert_int_equal(series->points[at].at_ns, at_ns);
	assert_int_equal(series->points[at].value, value);
	assert_true(series->points[at].per_second == per_second);
	assert_int_equal(series->points[at].reports, reports);
}

static void buckets_start_at_multiples_of_the_step(void **state)
{
	struct query_range_params params = { .base = { .from_ns = -15 * S, .to_ns = 25 * S },
					     .step_ns = 10 * S,
					     .sum_all = true };
	struct query_series_set set;
	struct world *world = *state;

	add(&world->tables[0], WORLD_ON_CPU, "pod=a", -15 * S, 5);
	add(&world->tables[1], WORLD_ON_CPU, "pod=b", -1, 20);
	add(&world->tables[0], WORLD_ON_CPU, "pod=a", 0, 1);
	add(&world->tables[0], WORLD_ON_CPU, "pod=b", 9 * S, 2);
	add(&world->tables[0], WORLD_ON_CPU, "pod=b", 24 * S, 50);
	add(&world->tables[0], WORLD_ON_CPU, "pod=b", 25 * S, 99);
	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, NULL), 0);
	assert_int_equal(set.series_count, 1);
	assert_int_equal(set.series[0].labels_count, 0);
	assert_int_equal(set.series[0].points_count, 4);
	expect_point(&set.series[0], 0, -20 * S, 5, 1, 1); /* 5 s of the bucket are shown */
	expect_point(&set.series[0], 1, -10 * S, 20, 2, 1);
	expect_point(&set.series[0], 2, 0, 3, 0.3, 2);
	expect_point(&set.series[0], 3, 20 * S, 50, 10, 1); /* 5 s */
	query_series_free(&set);
}

static void lines_are_series_or_sums(void **state)
{
	struct query_range_params params = { .base = { .to_ns = 10 * S }, .step_ns = 10 * S };
	struct query_series_set set;
	struct world *world = *state;

	add(&world->tables[0], WORLD_ON_CPU, "comm=x,pod=b", 0, 1);
	add(&world->tables[1], WORLD_ON_CPU, "comm=x,pod=b", S, 2);
	add(&world->tables[1], WORLD_ON_CPU, "comm=x,pod=a", 0, 4);
	add(&world->tables[1], WORLD_ON_CPU, "comm=y", 0, 8);
	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, NULL), 0);
	assert_int_equal(set.series_count, 3);
	assert_true(slice_is(set.series[0].labels[1].value, "a"));
	expect_point(&set.series[0], 0, 0, 4, 0.4, 1);
	expect_point(&set.series[1], 0, 0, 3, 0.3, 2);
	assert_true(slice_is(set.series[2].labels[0].value, "y"));
	query_series_free(&set);
	params.base.group_by[params.base.group_by_count++] = SLICE_LITERAL("comm");
	assert_int_equal(ask(world, WORLD_ON_CPU "{comm=\"x\"}", &params, &set, NULL), 0);
	assert_int_equal(set.series_count, 1);
	expect_point(&set.series[0], 0, 0, 7, 0.7, 3);
	query_series_free(&set);
	params.sum_all = true;
	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, NULL), 0);
	assert_int_equal(set.series_count, 1);
	expect_point(&set.series[0], 0, 0, 15, 1.5, 4);
	query_series_free(&set);
}

static void gauges_are_means_per_series(void **state)
{
	struct query_range_params params = { .base = { .to_ns = 10 * S },
					     .step_ns = 10 * S,
					     .sum_all = true };
	struct query_series_set set;
	struct world *world = *state;

	add(&world->tables[0], HEAP, "pod=a", 0, 10);
	add(&world->tables[1], HEAP, "pod=a", S, 20);
	add(&world->tables[1], HEAP, "pod=b", S, 100);
	assert_int_equal(ask(world, HEAP, &params, &set, NULL), 0);
	expect_point(&set.series[0], 0, 0, 115, 115, 3);
	query_series_free(&set);
}

static void aliases_are_counted_in_their_own_unit(void **state)
{
	struct query_range_params params = { .base = { .to_ns = 10 * S },
					     .step_ns = 10 * S,
					     .sum_all = true };
	struct query_series_set set;
	struct world *world = *state;

	add(&world->tables[0], WORLD_ON_CPU, "", 0, 7);
	assert_int_equal(
		ask(world, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", &params, &set, NULL), 0);
	expect_point(&set.series[0], 0, 0, 70, 7, 1);
	query_series_free(&set);
}

static void too_many_steps_or_series_are_refused(void **state)
{
	struct query_range_params params = { .base = { .to_ns = QUERY_STEPS_MAX * S + S },
					     .step_ns = S };
	struct query_series_set set;
	struct world *world = *state;
	struct err err = { 0 };

	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, &err), -ERR_LIMIT);
	assert_non_null(strstr(err.message, "larger step"));
	params.step_ns = 999;
	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, &err), -ERR_INVALID);
	params.step_ns = 2 * S;
	for (int i = 0; i <= QUERY_SERIES_MAX; i++) {
		char labels[32];

		snprintf(labels, sizeof(labels), "pod=%d", i);
		add(&world->tables[0], WORLD_ON_CPU, labels, 0, 1);
	}
	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, &err), -ERR_LIMIT);
	assert_non_null(strstr(err.message, "sum by fewer labels"));
	params.sum_all = true;
	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, &err), 0);
	query_series_free(&set);
}

static void types_are_those_of_reports_in_range(void **state)
{
	struct query_source source;
	struct query_type *types = NULL;
	struct world *world = *state;
	struct arena arena;
	size_t count = 0;

	add(&world->tables[0], WORLD_ON_CPU, "", 5, 1);
	add(&world->tables[1], WORLD_ON_CPU, "pod=a", 7, 1);
	add(&world->tables[1], HEAP, "", 20, 1);
	source = world_source(world);
	arena_init(&arena, 0);
	assert_int_equal(query_types(&source, 0, 20, &arena, &types, &count, NULL), 0);
	assert_int_equal(count, 1);
	assert_true(slice_is(types[0].type.name, "on_cpu"));
	assert_int_equal(types[0].newest_ns, 7);
	assert_int_equal(types[0].period, 10);
	assert_int_equal(query_types(&source, 0, 21, &arena, &types, &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_true(slice_is(types[0].type.name, "memory"));
	arena_free(&arena);
}

static void names_of_labels_are_listed_once_and_sorted(void **state)
{
	struct world *world = *state;
	struct tables *tables = &world->tables[0];
	struct query_source source;
	struct selector selector;
	struct slice *names = NULL;
	struct arena arena;
	size_t count = 0;

	add(tables, WORLD_ON_CPU, "pod=a,comm=x", 0, 1);
	add(&world->tables[1], WORLD_ON_CPU, "pod=b", 5, 1);
	add(&world->tables[1], HEAP, "late=1", 10, 1);
	world_report(tables, world_series(tables, WORLD_ON_CPU, 10, "pod=c"), 0, S);
	world_row(tables, "main", "thread=t,bytes=#8", 1);
	source = world_source(world);
	arena_init(&arena, 0);
	assert_int_equal(query_labels(&source, NULL, 0, 10, &arena, &names, &count, NULL), 0);
	assert_int_equal(count, 5);
	assert_true(slice_is(names[0], "bytes") && slice_is(names[1], "comm") &&
		    slice_is(names[2], "pod") && slice_is(names[3], "service_name") &&
		    slice_is(names[4], "thread"));
	assert_int_equal(selector_parse(SLICE_LITERAL("{pod=\"b\"}"), &selector, NULL), 0);
	assert_int_equal(query_labels(&source, &selector, 0, 10, &arena, &names, &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_true(slice_is(names[0], "pod") && slice_is(names[1], "service_name"));
	assert_int_equal(query_label_values(&source, NULL, SLICE_LITERAL("bytes"), 0, 10, &arena,
					    &names, &count, NULL),
			 0);
	assert_int_equal(count, 1);
	assert_true(slice_is(names[0], "8"));
	selector_free(&selector);
	arena_free(&arena);
}

static void each_series_is_of_the_service_that_the_rule_says(void **state)
{
	static const struct {
		const char *query;
		int64_t value;
	} cases[] = {
		{ WORLD_ON_CPU "{service_name=\"shop\"}", 3 },
		{ WORLD_ON_CPU "{service_name=\"java\"}", 4 },
		{ WORLD_ON_CPU "{service_name=\"unknown_service\"}", 8 },
		{ WORLD_ON_CPU "{service_name!=\"shop\"}", 12 },
		{ WORLD_ON_CPU "{service_name!~\"shop|java\",pod=\"a\"}", 8 },
		{ WORLD_ON_CPU "{service_name=\"\"}", 0 },
	};
	struct query_range_params params = {
		.base = { .to_ns = S,
			  .group_by = { SLICE_LITERAL("service_name") },
			  .group_by_count = 1 },
		.step_ns = S
	};
	struct world *world = *state;
	struct query_source source;
	struct slice *names = NULL;
	struct query_series_set set;
	struct arena arena;
	size_t count = 0;

	add(&world->tables[0], WORLD_ON_CPU, "comm=java,service_name=shop", 0, 1);
	add(&world->tables[0], WORLD_ON_CPU, "comm=java,job=shop", 0, 2);
	add(&world->tables[1], WORLD_ON_CPU, "comm=java", 0, 4);
	add(&world->tables[1], WORLD_ON_CPU, "pod=a", 0, 8);
	source = world_source(world);
	arena_init(&arena, 0);
	assert_int_equal(query_label_values(&source, NULL, SLICE_LITERAL("service_name"), 0, 10,
					    &arena, &names, &count, NULL),
			 0);
	assert_int_equal(count, 3);
	assert_true(slice_is(names[0], "java") && slice_is(names[1], "shop") &&
		    slice_is(names[2], "unknown_service"));
	arena_free(&arena);
	assert_int_equal(ask(world, WORLD_ON_CPU, &params, &set, NULL), 0);
	assert_int_equal(set.series_count, 3);
	assert_true(slice_is(set.series[1].labels[0].value, "shop"));
	assert_int_equal(set.series[1].points[0].value, 3);
	query_series_free(&set);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		params.base.group_by_count = 0;
		params.sum_all = true;
		assert_int_equal(ask(world, cases[i].query, &params, &set, NULL), 0);
		if ((set.series_count ? set.series[0].points[0].value : 0) != cases[i].value)
			fail_msg("%s", cases[i].query);
		query_series_free(&set);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(buckets_start_at_multiples_of_the_step),
		TEST(lines_are_series_or_sums),
		TEST(gauges_are_means_per_series),
		TEST(aliases_are_counted_in_their_own_unit),
		TEST(too_many_steps_or_series_are_refused),
		TEST(types_are_those_of_reports_in_range),
		TEST(names_of_labels_are_listed_once_and_sorted),
		TEST(each_series_is_of_the_service_that_the_rule_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
