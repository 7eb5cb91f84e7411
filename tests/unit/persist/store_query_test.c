/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query engine over the store: trees and time series are the same whether roll-ups answer or
 * raw reports do, before and after compaction and deletions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "history.h"
#include "server/persist/store_int.h"
#include "server/query/index/index_cache.h"
#include "server/query/render/render.h"
#include "sim_disk.h"

#define DIR "/store"
#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define BEGIN_NS (19000 * DAY_NS)
#define SEEDS 6
#define STEPS 12
#define QUESTIONS 25

static const char *const selectors[] = {
	"on_cpu:samples:count:cpu:n:delta",
	"on_cpu:samples:count:cpu:n:delta{region=\"r0\"}",
	"on_cpu:samples:count:cpu:n:delta{comm=~\"c1|c2\"}",
	"alloc:objects:count:space:n:delta{comm!=\"c0\"}",
	"alloc:bytes:count:space:n:delta",
	"heap:objects:count:space:n",
	"heap:bytes:count:space:n{region!=\"r1\",comm=~\"c.\"}",
};
static const char *const group_bys[] = { "", "", "comm", "region" };

#define PICK(history, array) (array)[history_dice((history), sizeof(array) / sizeof((array)[0]))]

struct world {
	struct sim_disk *disk;
	struct store *store;
	struct store_options options;
	int64_t now_ns;
	struct history history;
	uint64_t rollups_used, indexes_used;
	uint64_t tens_used[2]; /* of series, of all */
	struct index_cache *indexes;
};

static int64_t clock_of(void *context)
{
	return *(int64_t *)context;
}

static void must(int rc, const struct err *err)
{
	if (rc)
		fail_msg("%s", err->message);
}

static void begin(struct world *world, uint64_t seed)
{
	struct err err;

	world->disk = sim_disk_new(seed);
	world->now_ns = BEGIN_NS;
	history_init(&world->history, seed);
	world->indexes = index_cache_new(INDEX_CACHE_BYTES_DEFAULT);
	world->options = (struct store_options){
		.path = DIR,
		.vfs = sim_disk_vfs(world->disk),
		.clock = clock_of,
		.clock_context = &world->now_ns,
		.no_background = true,
	};
	must(store_open(&world->options, &world->store, &err), &err);
}

static void end(struct world *world)
{
	store_close(world->store);
	index_cache_free(world->indexes);
	history_free(&world->history);
	sim_disk_free(world->disk);
}

/* Whole hours and days, and anything. */
static int64_t draw_time(struct world *world)
{
	int64_t at = world->now_ns - (int64_t)history_dice(&world->history, 60) * HOUR_NS;

	if (history_dice(&world->history, 3) == 0)
		return at - at % DAY_NS;
	if (history_dice(&world->history, 2))
		return at - at % (history_dice(&world->history, 2) ? HOUR_NS : HOUR_NS / 6);
	return at + (int64_t)history_dice(&world->history, 3600) * CLOCK_NS_PER_S;
}

static struct query_params draw_params(struct world *world, struct selector *selector)
{
	struct query_params params = { .selector = selector, .nodes_only = true };
	int64_t a = draw_time(world), b = draw_time(world);
	const char *group_by = PICK(&world->history, group_bys);

	params.from_ns = a < b ? a : b;
	params.to_ns = a < b ? b : a;
	params.limits.threads_max = 1 + history_dice(&world->history, 3);
	if (*group_by)
		params.group_by[params.group_by_count++] = slice_of(group_by);
	assert_int_equal(selector_parse(slice_of(PICK(&world->history, selectors)), selector, NULL),
			 0);
	return params;
}

static struct store_query question_of(const struct query_params *params)
{
	return (struct store_query){ .from_ns = params->from_ns,
				     .to_ns = params->to_ns,
				     .selector = params->selector,
				     .names = params->group_by,
				     .names_count = params->group_by_count };
}

static char *ask_tree(struct world *world, const struct query_params *params, bool rolled_up)
{
	struct store_query query = question_of(params);
	struct store_snapshot snapshot;
	struct query_source source;
	struct strbuf text = { 0 };
	struct tree *tree;
	struct err err;

	query.sums_only = rolled_up;
	must(store_snapshot(world->store, &query, &snapshot, &err), &err);
	source = (struct query_source){ snapshot.segments, snapshot.count, NULL, NULL };
	must(query_tree(&source, params, &tree, &err), &err);
	render_folded(tree, &text);
	strbuf_addf(&text, "reports %llu from %lld for %lld\n", (unsigned long long)tree->reports,
		    (long long)tree->start_ns, (long long)tree->duration_ns);
	for (int level = SEGMENT_RAW + 1; level < SEGMENT_LEVELS; level++)
		world->rollups_used += tree->stats.segments_used[level];
	world->tens_used[0] += tree->stats.segments_used[SEGMENT_TEN_SERIES];
	world->tens_used[1] += tree->stats.segments_used[SEGMENT_TEN_ALL];
	tree_free(tree);
	store_snapshot_release(world->store, &snapshot);
	strbuf_reserve(&text, 1)[0] = '\0';
	return text.data;
}

/* Of the ten largest functions; with indexes of what was asked about before, or without. */
static char *ask_table(struct world *world, const struct query_params *asked, bool indexed)
{
	struct query_params params = *asked;
	struct store_query query = question_of(&params);
	struct store_snapshot snapshot;
	struct query_source source;
	struct strbuf text = { 0 };
	struct tree *tree;
	struct err err;

	params.rows_only = true;
	params.rows_limit = 10;
	query.sums_only = indexed;
	must(store_snapshot(world->store, &query, &snapshot, &err), &err);
	source = (struct query_source){ snapshot.segments, snapshot.count, NULL,
					indexed ? world->indexes : NULL };
	must(query_tree(&source, &params, &tree, &err), &err);
	render_top(tree, 10, &text);
	if (tree->unresolved_count)
		render_unresolved_text(tree, &text);
	world->indexes_used += tree->stats.indexes_used;
	tree_free(tree);
	store_snapshot_release(world->store, &snapshot);
	strbuf_reserve(&text, 1)[0] = '\0';
	return text.data;
}

static char *ask_series(struct world *world, const struct query_params *params, int64_t step_ns,
			bool rolled_up)
{
	struct query_range_params range = { .base = *params,
					    .step_ns = step_ns,
					    .sum_all = params->limits.threads_max == 1 };
	struct store_query query = question_of(params);
	struct query_series_set set;
	struct store_snapshot snapshot;
	struct query_source source;
	struct strbuf text = { 0 };
	struct err err;

	query.step_ns = rolled_up ? step_ns : 0;
	query.by_series = !range.sum_all && !params->group_by_count;
	query.names_count = range.sum_all ? 0 : query.names_count;
	must(store_snapshot(world->store, &query, &snapshot, &err), &err);
	source = (struct query_source){ snapshot.segments, snapshot.count, NULL, NULL };
	must(query_series(&source, &range, &set, &err), &err);
	render_series_json(&set, false, &text);
	for (int level = SEGMENT_RAW + 1; level < SEGMENT_LEVELS; level++)
		world->rollups_used += set.stats.segments_used[level];
	query_series_free(&set);
	store_snapshot_release(world->store, &snapshot);
	strbuf_reserve(&text, 1)[0] = '\0';
	return text.data;
}

static void expect_same(char *rolled_up, char *raw, const struct query_params *params)
{
	if (strcmp(rolled_up, raw))
		print_message("[%lld, %lld) %llu s\n", (long long)params->from_ns,
			      (long long)params->to_ns,
			      (unsigned long long)(params->to_ns - params->from_ns) /
				      CLOCK_NS_PER_S);
	assert_string_equal(rolled_up, raw);
	free(rolled_up);
	free(raw);
}

static void ask_all(struct world *world)
{
	static const int64_t steps_ns[] = { HOUR_NS / 4, HOUR_NS, 2 * HOUR_NS, DAY_NS };

	for (int i = 0; i < QUESTIONS; i++) {
		struct selector selector;
		struct query_params params = draw_params(world, &selector);
		int64_t step_ns = PICK(&world->history, steps_ns);

		expect_same(ask_tree(world, &params, true), ask_tree(world, &params, false),
			    &params);
		expect_same(ask_table(world, &params, true), ask_table(world, &params, false),
			    &params);
		expect_same(ask_series(world, &params, step_ns, true),
			    ask_series(world, &params, step_ns, false), &params);
		selector_free(&selector);
	}
}

static void change(struct world *world)
{
	const struct store_compact_options all = { .all = history_dice(&world->history, 2) };
	struct store_compacted done;
	struct err err;

	world->now_ns += (int64_t)(1 + history_dice(&world->history, 9)) * HOUR_NS;
	must(history_append(&world->history, world->store, 150, world->now_ns - 9 * HOUR_NS,
			    world->now_ns, &err),
	     &err);
	/* Many of few stacks in a short time, so that sums of ten minutes are worth it. */
	world->history.depth_max = 1;
	must(history_append(&world->history, world->store, 1000, world->now_ns - HOUR_NS / 3,
			    world->now_ns, &err),
	     &err);
	world->history.depth_max = 4;
	must(store_seal(world->store, &err), &err);
	if (history_dice(&world->history, 4) == 0)
		must(history_delete(&world->history, world->store,
				    history_dice(&world->history, HISTORY_DELETES),
				    world->now_ns - 5 * HOUR_NS, world->now_ns, &err),
		     &err);
	if (history_dice(&world->history, 2))
		must(store_compact(world->store, &all, &done, &err), &err);
}

static void answers_are_the_same_with_and_without_rollups(void **state)
{
	struct world world = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(&world, seed);
		for (int step = 0; step < STEPS; step++) {
			change(&world);
			ask_all(&world);
		}
		end(&world);
	}
	assert_true(world.rollups_used > 50);
	assert_true(world.indexes_used > 50);
	assert_true(world.tens_used[0] > 100 && world.tens_used[1] > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_the_same_with_and_without_rollups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
