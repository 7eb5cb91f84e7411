/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: every report of the range once, from the coarsest level that is exact. */
#include "server/persist/store_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define TEN_NS (HOUR_NS / 6)
#define HOURS_AND_DAYS (ALL_LEVELS & ~(1u << SEGMENT_TEN_SERIES | 1u << SEGMENT_TEN_ALL))
#define ALL_LEVELS ((1u << SEGMENT_LEVELS) - 1)
#define ROUNDS 20000
#define REPORTS 60

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % below);
}

static int64_t grain_of(enum segment_level level)
{
	if (level == SEGMENT_RAW)
		return 1;
	if (level == SEGMENT_TEN_SERIES || level == SEGMENT_TEN_ALL)
		return TEN_NS;
	return level == SEGMENT_HOUR_SERIES || level == SEGMENT_HOUR_ALL ? HOUR_NS : DAY_NS;
}

static int64_t before(int64_t at_ns, int64_t grain_ns)
{
	int64_t rest = at_ns % grain_ns;

	return at_ns - (rest < 0 ? rest + grain_ns : rest);
}

struct world {
	int64_t starts[REPORTS];
	struct store_plan_partition partition;
	struct store_query query;
	struct store_plan_piece pieces[STORE_PLAN_PIECES_MAX];
	size_t count;
};

/* Times around whole hours and days, so that edges meet. */
static int64_t draw_time(int64_t base_ns)
{
	int64_t at = base_ns + (int64_t)draw(4) * DAY_NS + (int64_t)draw(24) * HOUR_NS +
		     (int64_t)draw(2) * draw(6) * TEN_NS;

	return draw(2) ? at + (int64_t)draw(3) - 1 : at + (int64_t)draw(1u << 31) * 1000;
}

static void make_world(struct world *w)
{
	int64_t base_ns = draw(2) ? 0 : 20000 * DAY_NS;

	*w = (struct world){ 0 };
	for (int i = 0; i < REPORTS; i++) {
		w->starts[i] = draw_time(base_ns);
		if (!i || w->starts[i] < w->partition.start_min_ns)
			w->partition.start_min_ns = w->starts[i];
		if (!i || w->starts[i] > w->partition.start_max_ns)
			w->partition.start_max_ns = w->starts[i];
	}
	w->partition.levels = 1u << SEGMENT_RAW | draw(1u << SEGMENT_LEVELS);
	w->partition.alike = draw(2);
	w->partition.raw_only = !draw(8);
	w->query.from_ns = draw(8) ? draw_time(base_ns - DAY_NS) : INT64_MIN;
	w->query.to_ns = draw(8) ? draw_time(base_ns + DAY_NS) : INT64_MAX;
	w->query.by_series = draw(2);
	w->query.sums_only = draw(2);
	if (!w->query.sums_only)
		w->query.step_ns = draw(2) ? (int64_t)draw(60) * HOUR_NS : 15 * CLOCK_NS_PER_S;
	w->count = store_plan(&w->query, &w->partition, w->pieces);
	assert_in_range(w->count, 0, STORE_PLAN_PIECES_MAX);
}

/* What the reader of a piece takes: raw reports by their start, roll-ups by their first start. */
static bool piece_has(const struct world *w, const struct store_plan_piece *piece, int64_t start_ns)
{
	int64_t grain_ns = grain_of(piece->level), first_ns = INT64_MAX;

	for (int i = 0; i < REPORTS; i++)
		if (before(w->starts[i], grain_ns) == before(start_ns, grain_ns) &&
		    w->starts[i] < first_ns)
			first_ns = w->starts[i];
	if (piece->level == SEGMENT_RAW)
		first_ns = start_ns;
	return piece->from_ns <= first_ns && first_ns < piece->to_ns &&
	       (first_ns < piece->hole.from_ns || first_ns >= piece->hole.to_ns);
}

static void plans_count_every_report_of_the_range_once(void **state)
{
	struct world w;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		make_world(&w);
		for (int i = 0; i < REPORTS; i++) {
			bool wanted = w.query.from_ns <= w.starts[i] && w.starts[i] < w.query.to_ns;
			uint32_t times = 0;

			for (size_t at = 0; at < w.count; at++)
				times += piece_has(&w, &w.pieces[at], w.starts[i]);
			assert_int_equal(times, wanted);
		}
	}
}

static void plans_use_only_levels_that_may_answer(void **state)
{
	struct world w;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		make_world(&w);
		for (size_t at = 0; at < w.count; at++) {
			enum segment_level level = w.pieces[at].level;

			assert_true(w.partition.levels >> level & 1);
			if (level == SEGMENT_RAW)
				continue;
			assert_false(w.partition.raw_only);
			assert_true(w.query.sums_only || w.query.step_ns % grain_of(level) == 0);
			assert_true(w.query.sums_only || w.query.step_ns % HOUR_NS == 0);
			if (level == SEGMENT_HOUR_ALL || level == SEGMENT_DAY_ALL ||
			    level == SEGMENT_TEN_ALL)
				assert_true(w.partition.alike && !w.query.by_series);
		}
	}
}

static void expect_plan(const struct store_query *query, uint32_t levels, const char *wanted)
{
	static const char names[] = "rhHdDtT"; /* by level */
	struct store_plan_partition partition = { .start_min_ns = 10 * DAY_NS,
						  .start_max_ns = 13 * DAY_NS - 1,
						  .levels = levels,
						  .alike = true };
	struct store_plan_piece pieces[STORE_PLAN_PIECES_MAX];
	size_t count = store_plan(query, &partition, pieces);
	char got[8] = "";

	for (size_t i = 0; i < count; i++)
		got[i] = names[pieces[i].level];
	assert_string_equal(got, wanted);
}

static void plans_take_the_coarsest_level(void **state)
{
	struct store_query q = { .from_ns = 0, .to_ns = INT64_MAX, .sums_only = true };

	(void)state;
	expect_plan(&q, ALL_LEVELS, "D");
	expect_plan(&q, ALL_LEVELS & ~(1u << SEGMENT_DAY_ALL), "d");
	expect_plan(&q, 1u << SEGMENT_RAW | 1u << SEGMENT_HOUR_ALL, "H");
	expect_plan(&q, 1u << SEGMENT_RAW, "r");
	q.from_ns = 10 * DAY_NS + HOUR_NS + 1;
	expect_plan(&q, ALL_LEVELS, "DHTr");
	expect_plan(&q, HOURS_AND_DAYS, "DHr");
	q.to_ns = 12 * DAY_NS + HOUR_NS + TEN_NS + 1;
	expect_plan(&q, ALL_LEVELS, "DHTr");
	expect_plan(&q, HOURS_AND_DAYS, "DHr");
	expect_plan(&q, 1u << SEGMENT_RAW | 1u << SEGMENT_TEN_SERIES, "tr");
	q.to_ns = q.from_ns + HOUR_NS;
	expect_plan(&q, ALL_LEVELS, "Tr");
	expect_plan(&q, HOURS_AND_DAYS, "r");
	q.from_ns = q.to_ns;
	expect_plan(&q, ALL_LEVELS, "");
	q = (struct store_query){ .from_ns = 0, .to_ns = INT64_MAX, .step_ns = HOUR_NS };
	expect_plan(&q, ALL_LEVELS, "H");
	q.by_series = true;
	expect_plan(&q, ALL_LEVELS, "h");
	q.step_ns = 2 * DAY_NS;
	expect_plan(&q, ALL_LEVELS, "d");
	q.step_ns = HOUR_NS / 2;
	expect_plan(&q, ALL_LEVELS, "r");
}

/* A block may hold reports of both edges: they are one piece, and what lies between is its hole. */
static void both_edges_of_a_level_are_one_piece(void **state)
{
	const struct store_plan_partition partition = { .start_min_ns = 10 * DAY_NS,
							.start_max_ns = 13 * DAY_NS - 1,
							.levels = ALL_LEVELS,
							.alike = true };
	const struct store_query query = { .from_ns = 10 * DAY_NS + HOUR_NS + 7,
					   .to_ns = 10 * DAY_NS + 3 * HOUR_NS + TEN_NS + 9,
					   .sums_only = true };
	struct store_plan_piece pieces[STORE_PLAN_PIECES_MAX];

	(void)state;
	assert_int_equal(store_plan(&query, &partition, pieces), 3);
	assert_int_equal(pieces[1].level, SEGMENT_TEN_ALL);
	assert_true(pieces[1].hole.from_ns == 10 * DAY_NS + 2 * HOUR_NS);
	assert_true(pieces[1].hole.to_ns == 10 * DAY_NS + 3 * HOUR_NS);
	assert_int_equal(pieces[2].level, SEGMENT_RAW);
	assert_true(pieces[2].from_ns == query.from_ns && pieces[2].to_ns == query.to_ns);
	assert_true(pieces[2].hole.from_ns == 10 * DAY_NS + HOUR_NS + TEN_NS);
	assert_true(pieces[2].hole.to_ns == 10 * DAY_NS + 3 * HOUR_NS + TEN_NS);
}

static void plans_survive_any_times(void **state)
{
	const int64_t times[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
	const size_t count = sizeof(times) / sizeof(times[0]);

	(void)state;
	for (size_t i = 0; i < count * count * count * count; i++) {
		struct store_query query = { .from_ns = times[i % count],
					     .to_ns = times[i / count % count],
					     .sums_only = true };
		struct store_plan_partition partition = { .start_min_ns =
								  times[i / count / count % count],
							  .start_max_ns =
								  times[i / count / count / count],
							  .levels = ALL_LEVELS };
		struct store_plan_piece pieces[STORE_PLAN_PIECES_MAX];

		assert_in_range(store_plan(&query, &partition, pieces), 0, STORE_PLAN_PIECES_MAX);
	}
}

static void add_series(struct tables *tables, const char *service, const char *pod)
{
	struct column column = { 0 };
	struct group group = { .column_count = 1 };
	struct label labels[] = {
		{ .name = tables_string(tables, SLICE_LITERAL("service_name")),
		  .value = tables_string(tables, slice_of(service)) },
		{ .name = tables_string(tables, SLICE_LITERAL("pod")),
		  .value = tables_string(tables, slice_of(pod)) },
	};

	tables_series(tables, tables_label_set(tables, labels, 2),
		      tables_group(tables, &group, &column));
}

static void series_are_alike_in_what_the_query_names(void **state)
{
	const struct slice service = SLICE_LITERAL("service_name"), pod = SLICE_LITERAL("pod");
	const struct slice none = SLICE_LITERAL("none");
	struct store_query query = { 0 };
	struct tables_view view;
	struct selector selector;
	struct tables tables;

	(void)state;
	tables_init(&tables);
	add_series(&tables, "api", "p1");
	add_series(&tables, "api", "p2");
	view = tables_view_of(&tables);
	assert_true(store_plan_alike(&query, &view));
	query.names = &service;
	query.names_count = 1;
	assert_true(store_plan_alike(&query, &view));
	query.names = &none;
	assert_true(store_plan_alike(&query, &view));
	query.names = &pod;
	assert_false(store_plan_alike(&query, &view));
	assert_true(store_plan_names(&query, &pod, 1));
	assert_false(store_plan_names(&query, &service, 1));
	query.names_count = 0;
	assert_int_equal(selector_parse(SLICE_LITERAL("{pod=~\"p.\"}"), &selector, NULL), 0);
	query.selector = &selector;
	assert_false(store_plan_alike(&query, &view));
	assert_true(store_plan_names(&query, &pod, 1));
	selector_free(&selector);
	tables_free(&tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_count_every_report_of_the_range_once),
		cmocka_unit_test(plans_use_only_levels_that_may_answer),
		cmocka_unit_test(plans_take_the_coarsest_level),
		cmocka_unit_test(both_edges_of_a_level_are_one_piece),
		cmocka_unit_test(plans_survive_any_times),
		cmocka_unit_test(series_are_alike_in_what_the_query_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
