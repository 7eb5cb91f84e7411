/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of one query: every step once, one budget, one deadline, errors, progress. */
#include "server/query/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "world.h"

#define STEPS 1000
#define MIB ((size_t)1 << 20)

struct counts {
	_Atomic uint32_t done[STEPS];
	size_t fails_at;
};

static int count_step(void *context, struct work *work, size_t index, struct err *err)
{
	struct counts *counts = context;

	atomic_fetch_add(&counts->done[index], 1);
	if (index >= counts->fails_at)
		return err_set(err, ERR_LIMIT, "step %zu", index);
	return work_tick(work, 1, err);
}

static void every_step_is_done_once(void **state)
{
	struct counts *counts = calloc(1, sizeof(*counts));

	(void)state;
	counts->fails_at = SIZE_MAX;
	for (uint32_t threads = 1; threads < 6; threads++) {
		const struct query_limits limits = { .threads_max = threads };
		struct work work;

		work_begin(&work, &limits);
		for (int round = 0; round < 3; round++)
			assert_int_equal(team_run(&work, STEPS, 0, count_step, counts, NULL), 0);
		assert_int_equal(work_stats(&work).threads, threads);
		work_end(&work);
	}
	for (size_t i = 0; i < STEPS; i++)
		assert_int_equal(counts->done[i], 3 * 5);
	free(counts);
}

static void the_error_of_a_step_ends_all(void **state)
{
	const struct query_limits limits = { .threads_max = 4 };
	struct counts *counts = calloc(1, sizeof(*counts));
	struct err err = { 0 };
	struct work work;
	size_t at;

	(void)state;
	counts->fails_at = STEPS / 2;
	work_begin(&work, &limits);
	assert_int_equal(team_run(&work, STEPS, 0, count_step, counts, &err), -ERR_LIMIT);
	assert_int_equal(sscanf(err.message, "step %zu", &at), 1);
	assert_in_range(at, STEPS / 2, STEPS / 2 + 3);
	assert_int_equal(counts->done[STEPS - 1], 0);
	work_end(&work);
	free(counts);
}

static int use_memory(void *context, struct work *work, size_t index, struct err *err)
{
	(void)context;
	(void)index;
	if (!arena_alloc(&work->arena, MIB))
		return work_over_budget(work, err);
	return work_check(work, err);
}

static void threads_share_one_budget(void **state)
{
	const struct query_limits limits = { .threads_max = 4, .memory_bytes = 64 * MIB };
	struct err err = { 0 };
	struct work work;

	(void)state;
	/* Half of it is for the answer. */
	work_begin(&work, &limits);
	assert_int_equal(team_run(&work, 30, 0, use_memory, NULL, &err), 0);
	assert_int_equal(team_run(&work, 30, 0, use_memory, NULL, &err), -ERR_NO_MEMORY);
	work_end(&work);
}

static void fill(struct world *world)
{
	world_init(world, 4);
	for (size_t v = 0; v < 4; v++) {
		uint32_t series =
			world_series(&world->tables[v], WORLD_ON_CPU, 1, v & 1 ? "a=b" : "a=c");

		for (int i = 0; i < 2000; i++) {
			world_report(&world->tables[v], series, i, 1);
			world_row(&world->tables[v], i & 1 ? "main;run" : "main", "", 1);
		}
	}
}

static int ask(struct world *world, const struct query_limits *limits, struct tree **ret,
	       struct err *err)
{
	struct query_params params = { .to_ns = INT64_MAX, .limits = *limits };

	return world_ask(world, WORLD_ON_CPU, &params, ret, err);
}

static void queries_end_when_cancelled_or_out_of_time(void **state)
{
	const _Atomic bool cancelled = true;
	struct query_limits limits = { .threads_max = 3, .cancelled = &cancelled };
	struct world world;
	struct tree *tree;
	struct err err;

	(void)state;
	fill(&world);
	assert_int_equal(ask(&world, &limits, &tree, &err), -ERR_CANCELLED);
	assert_string_equal(err.message, "query: cancelled");
	limits = (struct query_limits){ .threads_max = 3, .deadline_at_ns = 1 };
	assert_int_equal(ask(&world, &limits, &tree, &err), -ERR_DEADLINE);
	world_free(&world);
}

static void progress_ends_where_it_was_announced(void **state)
{
	struct query_progress progress = { 0 };
	const struct query_limits limits = { .threads_max = 3, .progress = &progress };
	struct world world;
	struct tree *tree;

	(void)state;
	fill(&world);
	assert_int_equal(ask(&world, &limits, &tree, NULL), 0);
	assert_int_equal(tree->total, 8000);
	assert_int_equal(tree->stats.rows_read, 8000);
	assert_int_equal(progress.blocks_all, 8);
	assert_int_equal(progress.blocks_done, 8);
	assert_int_equal(tree->stats.blocks_read, 8);
	tree_free(tree);
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_step_is_done_once),
		cmocka_unit_test(the_error_of_a_step_ends_all),
		cmocka_unit_test(threads_share_one_budget),
		cmocka_unit_test(queries_end_when_cancelled_or_out_of_time),
		cmocka_unit_test(progress_ends_where_it_was_announced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
