/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: which rows count, how they meet, what functions are, what is refused. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/query/render/render.h"
#include "server/query/tree/invert.h"
#include "server/query/tree/nodes.h"

#define HEAP "memory:inuse_space:bytes:space:bytes"

static int set_up(void **state)
{
	*state = malloc(sizeof(struct world));
	world_init(*state, 3);
	return 0;
}

static int tear_down(void **state)
{
	world_free(*state);
	free(*state);
	return 0;
}

static void expect(struct tree *tree, const char *folded)
{
	char *text = world_folded(tree);

	assert_string_equal(text, folded);
	free(text);
	tree_free(tree);
}

static void add(struct tables *tables, const char *labels, int64_t start_ns, const char *stack,
		const char *row_labels, int64_t value)
{
	world_report(tables, world_series(tables, WORLD_ON_CPU, 52631578, labels), start_ns, 10);
	world_row(tables, stack, row_labels, value);
}

static void query_takes_reports_from_start_up_to_but_without_the_end(void **state)
{
	struct world *world = *state;

	add(&world->tables[0], "", 9, "a", "", 1);
	add(&world->tables[0], "", 10, "b", "", 2);
	add(&world->tables[0], "", 19, "c", "", 4);
	add(&world->tables[0], "", 20, "d", "", 8);
	expect(world_tree(world, WORLD_ON_CPU, 10, 20), "b 2\nc 4\n");
	expect(world_tree(world, WORLD_ON_CPU, 10, 10), "");
	expect(world_tree(world, WORLD_ON_CPU, 20, 10), "");
}

static void query_finds_few_stacks_among_many(void **state)
{
	struct world *world = *state;
	struct tree *tree;
	char stack[32];

	for (int i = 0; i < 300; i++) {
		snprintf(stack, sizeof(stack), "main;run%d;leaf", i);
		add(&world->tables[0], i % 100 == 64 ? "comm=x" : "comm=y", i, stack, "", i);
	}
	add(&world->tables[0], "comm=x", 300, "main", "", 1);
	tree = world_tree(world, WORLD_ON_CPU "{comm=\"x\"}", 0, 1000);
	assert_int_equal(tree->stacks_count, 4);
	expect(tree, "main 1\nmain;run164;leaf 164\nmain;run264;leaf 264\nmain;run64;leaf 64\n");
}

static void query_adds_up_equal_stacks_of_all_views(void **state)
{
	struct world *world = *state;
	struct tree *tree;

	for (int i = 0; i < 3; i++) {
		add(&world->tables[i], "comm=x", 0, "main;run", "", 1);
		add(&world->tables[i], "comm=y", 5, "main", "", 10);
	}
	tree = world_tree(world, WORLD_ON_CPU, 0, 10);
	assert_int_equal(tree->total, 33);
	assert_int_equal(tree->reports, 6);
	assert_int_equal(tree->samples_rows, 6);
	assert_int_equal(tree->stacks_count, 2);
	assert_int_equal(tree->duration_ns, 15);
	expect(tree, "main 30\nmain;run 3\n");
}

static void query_without_data_is_an_empty_tree(void **state)
{
	struct tree *tree = world_tree(*state, WORLD_ON_CPU, 0, 10);

	assert_int_equal(tree->total, 0);
	assert_int_equal(tree->nodes_count, 1);
	assert_int_equal(tree->functions_count, 1);
	expect(tree, "");
}

static void query_matches_a_missing_label_as_the_empty_string(void **state)
{
	static const struct {
		const char *matchers;
		const char *folded;
	} cases[] = {
		{ "{pod=\"\"}", "bare 1\n" },
		{ "{pod!=\"\"}", "p1 2\np2 4\n" },
		{ "{pod=~\"p.\"}", "p1 2\np2 4\n" },
		{ "{pod=~\".\"}", "" },
		{ "{pod=~\".*\"}", "bare 1\np1 2\np2 4\n" },
		{ "{pod!~\"p1\"}", "bare 1\np2 4\n" },
		{ "{pod!=\"p1\"}", "bare 1\np2 4\n" },
		{ "{other=\"\"}", "bare 1\np1 2\np2 4\n" },
		{ "{other!=\"\"}", "" },
		{ "{pod=\"p1\",pod=\"p2\"}", "" },
	};
	struct world *world = *state;

	add(&world->tables[0], "", 0, "bare", "", 1);
	add(&world->tables[0], "pod=p1", 0, "p1", "", 2);
	add(&world->tables[1], "pod=p2", 0, "p2", "", 4);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char selector[128];

		snprintf(selector, sizeof(selector), WORLD_ON_CPU "%s", cases[i].matchers);
		expect(world_tree(world, selector, 0, 10), cases[i].folded);
	}
}

static void query_matches_sample_labels_of_rows_whose_series_lacks_the_name(void **state)
{
	static const struct {
		const char *matchers;
		const char *folded;
	} cases[] = {
		{ "{thread=\"t1\"}", "one 2\nseries 16\n" },
		{ "{thread!=\"t1\"}", "none 1\ntwo 4\n" },
		{ "{thread=\"\"}", "none 1\n" },
		{ "{thread=~\"t.\"}", "one 2\nseries 16\ntwo 4\n" },
		{ "{bytes=\"64\"}", "one 2\n" },
		{ "{bytes!~\"6.*\"}", "none 1\nseries 16\ntwo 4\n" },
		{ "{thread=\"t1\",bytes=\"64\"}", "one 2\n" },
	};
	struct world *world = *state;
	struct tables *tables = &world->tables[0];

	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, "comm=x"), 0, 10);
	world_row(tables, "none", "", 1);
	world_row(tables, "one", "thread=t1,bytes=#64", 2);
	world_row(tables, "two", "thread=t2", 4);
	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, "comm=x,thread=t1"), 0, 10);
	world_row(tables, "series", "thread=t2", 16);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char selector[128];

		snprintf(selector, sizeof(selector), WORLD_ON_CPU "%s", cases[i].matchers);
		expect(world_tree(world, selector, 0, 10), cases[i].folded);
	}
}

static void query_groups_by_labels_of_series_and_samples(void **state)
{
	struct world *world = *state;

	add(&world->tables[0], "comm=x", 0, "main", "thread=t1", 1);
	add(&world->tables[0], "comm=x", 0, "main", "thread=t2", 2);
	add(&world->tables[1], "comm=y", 0, "main;run", "thread=t1", 4);
	add(&world->tables[1], "comm=y", 0, "main", "cpu=#3", 8);
	expect(world_tree_by(world, WORLD_ON_CPU, 0, 9, "comm"),
	       "x;main 3\ny;main 8\ny;main;run 4\n");
	expect(world_tree_by(world, WORLD_ON_CPU, 0, 9, "thread"),
	       "(none);main 8\nt1;main 1\nt1;main;run 4\nt2;main 2\n");
	expect(world_tree_by(world, WORLD_ON_CPU, 0, 9, "comm,thread"),
	       "x,t1;main 1\nx,t2;main 2\ny,(none);main 8\ny,t1;main;run 4\n");
	expect(world_tree_by(world, WORLD_ON_CPU, 0, 9, "cpu"),
	       "(none);main 3\n(none);main;run 4\n3;main 8\n");
	expect(world_tree_by(world, WORLD_ON_CPU, 0, 9, "nosuch"),
	       "(none);main 11\n(none);main;run 4\n");
}

static void query_takes_the_mean_of_a_gauge_per_series(void **state)
{
	struct world *world = *state;
	struct tree *tree;

	for (int i = 0; i < 3; i++) {
		struct tables *tables = &world->tables[i];

		world_report(tables, world_series(tables, HEAP, 1, "pod=a"), 10 * i, 0);
		world_row(tables, "alloc", "", 100 * i);
	}
	world_report(&world->tables[0], world_series(&world->tables[0], HEAP, 1, "pod=b"), 5, 0);
	world_row(&world->tables[0], "alloc", "", 7);
	world_row(&world->tables[0], "other", "", 1);
	tree = world_tree(world, HEAP, 0, 100);
	assert_int_equal(tree->duration_ns, 0);
	expect(tree, "alloc 107\nother 1\n");
	expect(world_tree(world, HEAP, 0, 20), "alloc 57\nother 1\n");
	expect(world_tree(world, HEAP "{pod=\"a\"}", 10, 100), "alloc 150\n");
}

static void query_rounds_a_gauge_half_away_from_zero_once_for_all(void **state)
{
	struct world *world = *state;
	struct tables *tables = &world->tables[0];
	uint32_t series = world_series(tables, HEAP, 1, "");

	for (int i = 0; i < 2; i++) {
		world_report(tables, series, i, 0);
		if (i)
			continue;
		world_row(tables, "half", "", 1);
		world_row(tables, "minus", "", -1);
		world_row(tables, "three", "", 3);
	}
	/* 1/2, -1/2 and 3/2 make 3/2: of equal remainders the first name gets its one first. */
	expect(world_tree(world, HEAP, 0, 2), "half 1\nthree 1\n");
	world_report(tables, series, 2, 0);
	expect(world_tree(world, HEAP, 0, 3), "three 1\n");
}

#define OBJECTS 40

/* Objects that two reports of three have one of: a mean of 2/3 each. */
static struct tree *tree_of_objects(struct world *world, bool backwards)
{
	struct tables *tables = &world->tables[0];
	uint32_t series = world_series(tables, HEAP, 1, "");
	char stack[64];

	for (int i = 0; i < 3; i++) {
		world_report(tables, series, i, 0);
		for (int at = 0; i && at < OBJECTS; at++) {
			int object = backwards ? OBJECTS - 1 - at : at;

			snprintf(stack, sizeof(stack), "main;run%d;new%d", object % 4, object);
			world_row(tables, stack, "", 1);
		}
	}
	return world_tree(world, HEAP, 0, 3);
}

/* Rounded by themselves they would make 40. Each has the same, whatever the order they came in. */
static void query_of_few_objects_adds_up_to_their_mean(void **state)
{
	char *folded[2];

	(void)state;
	for (int backwards = 0; backwards < 2; backwards++) {
		struct world world;
		struct tree *tree;

		world_init(&world, 1);
		tree = tree_of_objects(&world, backwards);
		assert_int_equal(tree->total, 27);
		for (uint32_t i = 0; i < tree->nodes_count; i++)
			if (tree->nodes[i].depth == 2)
				assert_in_range(tree->nodes[i].total, 6, 7);
		folded[backwards] = world_folded(tree);
		tree_free(tree);
		world_free(&world);
	}
	assert_string_equal(folded[0], folded[1]);
	free(folded[0]);
	free(folded[1]);
}

static void query_at_a_moment_takes_the_nearest_report_of_each_series(void **state)
{
	struct query_params params = { .at_moment = true, .moment_ns = 50, .moment_window_ns = 20 };
	struct world *world = *state;
	struct tree *tree = NULL;

	add(&world->tables[0], "pod=a", 29, "too early", "", 1);
	add(&world->tables[0], "pod=a", 31, "a31", "", 2);
	add(&world->tables[1], "pod=a", 45, "a45", "", 4);
	add(&world->tables[0], "pod=b", 40, "b40", "", 8);
	add(&world->tables[2], "pod=b", 60, "b60", "", 16);
	add(&world->tables[2], "pod=c", 71, "too late", "", 32);
	add(&world->tables[2], "pod=d", 70, "edge", "", 64);
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, NULL), 0);
	assert_int_equal(tree->reports, 3);
	expect(tree, "a45 4\nb40 8\nedge 64\n");
}

static void query_keeps_a_function_whole_over_addresses_and_builds(void **state)
{
	static const struct frame frames[] = {
		{ .kind = FRAME_NATIVE, .address = 0x10, .line = 1 },
		{ .kind = FRAME_NATIVE, .address = 0x20, .line = 2 },
	};
	struct world *world = *state;

	for (int i = 0; i < 2; i++) {
		struct tables *tables = &world->tables[i];
		struct frame frame = frames[i];
		uint32_t series = world_series(tables, WORLD_ON_CPU, 1, "");

		frame.function = tables_string(tables, SLICE_LITERAL("work"));
		frame.mapping_file = tables_string(tables, i ? SLICE_LITERAL("/old/libx.so")
							     : SLICE_LITERAL("/new/libx.so"));
		frame.build_id =
			tables_string(tables, i ? SLICE_LITERAL("aa") : SLICE_LITERAL("bb"));
		frame.file = tables_string(tables, i ? SLICE_LITERAL("") : SLICE_LITERAL("w.c"));
		world_report(tables, series, 0, 1);
		assert_true(tables_row(tables, tables_node(tables, 0, tables_frame(tables, &frame)),
				       0, &(int64_t){ 1 }));
		world_row(tables, "work@/other/liby.so", "", 1);
	}
	struct tree *tree = world_tree(world, WORLD_ON_CPU, 0, 1);

	assert_int_equal(tree->nodes_count, 3);
	assert_int_equal(tree->functions_count, 3);
	assert_int_equal(tree->stacks_count, 3);
	assert_int_equal(tree->nodes[1].total, 2);
	assert_int_equal(tree->nodes[2].total, 2);
	tree_free(tree);
}

static void query_tells_interpreted_functions_apart_by_file(void **state)
{
	struct world *world = *state;
	struct tables *tables = &world->tables[0];
	const char *const files[] = { "a.py", "b.py", "a.py" };
	struct tree *tree;

	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, ""), 0, 1);
	for (uint32_t i = 0; i < 3; i++) {
		struct frame frame = {
			.kind = FRAME_PYTHON,
			.function = tables_string(tables, SLICE_LITERAL("__init__")),
			.file = tables_string(tables, slice_of(files[i])),
			.line = i,
		};

		assert_true(tables_row(tables, tables_node(tables, 0, tables_frame(tables, &frame)),
				       0, &(int64_t){ 1 }));
	}
	tree = world_tree(world, WORLD_ON_CPU, 0, 1);
	assert_int_equal(tree->nodes_count, 3);
	assert_int_equal(tree->nodes[1].total, 2);
	tree_free(tree);
}

static void query_calls_unnamed_code_by_its_address(void **state)
{
	struct world *world = *state;
	struct tables *tables = &world->tables[0];

	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, ""), 0, 1);
	world_row(tables, "@/usr/lib/libfoo.so:0x4a3f", "", 1);
	world_row(tables, "@/usr/lib/libfoo.so:0x4a40", "", 2);
	world_row(tables, "@[kernel]:0xffffffff81000000", "", 4);
	world_row(tables, "@[anon]:0x1", "", 8);
	world_row(tables, "@[anon]:0x2", "", 16);
	world_row(tables, "@:0x5", "", 32);
	world_row(tables, "@", "", 64);
	expect(world_tree(world, WORLD_ON_CPU, 0, 1),
	       "0x4a3f [libfoo.so] 1\n0x4a40 [libfoo.so] 2\n0x5 32\n"
	       "0xffffffff81000000 [kernel] 4\n[anon] 24\n[unknown] 64\n");
}

static void query_counts_a_stack_without_frames(void **state)
{
	struct world *world = *state;

	add(&world->tables[0], "comm=x", 0, "", "", 3);
	add(&world->tables[0], "comm=x", 0, "main", "", 1);
	expect(world_tree(world, WORLD_ON_CPU, 0, 1), "[no frames] 3\nmain 1\n");
	expect(world_tree_by(world, WORLD_ON_CPU, 0, 1, "comm"), "x 3\nx;main 1\n");
}

static void query_stops_sums_at_the_ends_of_64_bits(void **state)
{
	struct world *world = *state;
	struct tables *tables = &world->tables[0];
	struct tree *tree;

	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, ""), 0, 1);
	world_row(tables, "a", "", INT64_MAX);
	world_row(tables, "a", "", INT64_MAX);
	world_row(tables, "b", "", 1);
	tree = world_tree(world, WORLD_ON_CPU, 0, 1);
	assert_true(tree->total == INT64_MAX);
	tree_free(tree);
}

static void query_answers_to_pyroscopes_names_of_cpu_time(void **state)
{
	struct world *world = *state;
	struct tree *tree;

	add(&world->tables[0], "", 0, "main", "", 3);
	tree = world_tree(world, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 0, 1);
	assert_int_equal(tree->total, 3 * 52631578ll);
	assert_true(tree->type.delta);
	tree_free(tree);
	expect(world_tree(world, "process_cpu:samples:count:cpu:nanoseconds", 0, 1), "main 3\n");
	expect(world_tree(world, "on_cpu:samples:count:cpu:nanoseconds", 0, 1), "main 3\n");
	world_report(&world->tables[1],
		     world_series(&world->tables[1],
				  "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", 1, ""),
		     0, 1);
	world_row(&world->tables[1], "own", "", 5);
	expect(world_tree(world, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 0, 1), "own 5\n");
}

/* Which type answers, what is selected decides: not what others store in the same segments. */
static void each_selector_has_its_own_alias(void **state)
{
	static const char asked[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
	static const char stored[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
	struct world *world = *state;
	struct tables *tables = &world->tables[0];
	char text[160];

	world_report(tables, world_series(tables, WORLD_ON_CPU, 10, "comm=a"), 0, 1);
	world_row(tables, "sampled", "", 3);
	world_report(tables, world_series(tables, stored, 1, "comm=b"), 0, 1);
	world_row(tables, "sent", "", 5);
	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, "comm=b"), 0, 1);
	world_row(tables, "counted twice", "", 5);
	world_report(tables, world_series(tables, stored, 1, "comm=a"), 100, 1);
	world_row(tables, "later", "", 7);

	snprintf(text, sizeof(text), "%s{comm=\"a\"}", asked);
	expect(world_tree(world, text, 0, 1), "sampled 30\n");
	expect(world_tree(world, text, 0, 101), "later 7\n");
	snprintf(text, sizeof(text), "%s{comm=\"b\"}", asked);
	expect(world_tree(world, text, 0, 1), "sent 5\n");
	expect(world_tree(world, asked, 0, 1), "sent 5\n");
	snprintf(text, sizeof(text), "%s{comm=\"c\"}", asked);
	expect(world_tree(world, text, 0, 1), "");
}

/* As a store has it in memory: all series of a segment that are another tenant's are left out. */
static void types_of_what_is_left_out_hide_no_alias(void **state)
{
	static const char asked[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
	static const uint8_t all = 1;
	const struct segment_deletion others = { &all, INT64_MIN, INT64_MAX };
	struct query_params params = { .to_ns = 1 };
	struct world *world = *state;
	struct query_source source;
	struct selector selector;
	struct tree *tree;

	add(&world->tables[0], "", 0, "main", "", 3);
	world_report(&world->tables[1],
		     world_series(&world->tables[1],
				  "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", 1, ""),
		     0, 1);
	world_row(&world->tables[1], "theirs", "", 5);
	source = world_source(world);
	source.segments[1].deletions = &others;
	source.segments[1].deletions_count = 1;
	assert_int_equal(selector_parse(slice_of(asked), &selector, NULL), 0);
	params.selector = &selector;
	assert_int_equal(query_tree(&source, &params, &tree, NULL), 0);
	assert_int_equal(tree->total, 3 * 52631578ll);
	tree_free(tree);
	selector_free(&selector);
}

/* All queries share one budget; answers count until they are freed. */
static void queries_share_their_memory(void **state)
{
	struct query_pool pool = { .limit_bytes = (size_t)64 << 20 };
	struct query_params params = { .to_ns = 1, .limits = { .pool = &pool } };
	struct world *world = *state;
	struct tree *first = NULL, *second = NULL;
	struct err err;
	char stack[32];

	world_report(&world->tables[0], world_series(&world->tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	for (int i = 0; i < 2000; i++) {
		snprintf(stack, sizeof(stack), "main;function%d", i);
		world_row(&world->tables[0], stack, "", 1);
	}
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &first, &err), 0);
	assert_int_equal(pool.used_bytes, first->arena.used_bytes);

	/* Somebody else has the rest. */
	pool.used_bytes += pool.limit_bytes;
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &second, &err), -ERR_NO_MEMORY);
	assert_non_null(strstr(err.message, "ask again"));
	pool.used_bytes -= pool.limit_bytes;
	assert_int_equal(pool.used_bytes, first->arena.used_bytes);
	tree_free(first);
	assert_int_equal(pool.used_bytes, 0);

	pool.limit_bytes = 1 << 16;
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &second, &err), -ERR_NO_MEMORY);
	assert_non_null(strstr(err.message, "narrow"));
	assert_int_equal(pool.used_bytes, 0);
}

#define ALIKE 40000
#define ALIKE_BYTES ((size_t)78 << 20) /* 92 MiB with all lists of sums at once, 66 without */

/* Each of eight segments has all the stacks: memory is for the distinct ones. */
static void segments_of_equal_stacks_need_little_memory(void **state)
{
	struct query_params params = { .to_ns = 1,
				       .rows_only = true,
				       .rows_limit = 10,
				       .limits = { .memory_bytes = ALIKE_BYTES } };
	struct world *world = *state;
	struct query_source source;
	struct selector selector;
	struct tree *tree = NULL;
	struct err err = { 0 };
	char stack[32];

	world_free(world);
	world_init(world, WORLD_VIEWS_MAX);
	for (int view = 0; view < WORLD_VIEWS_MAX; view++) {
		struct tables *tables = &world->tables[view];

		world_report(tables, world_series(tables, WORLD_ON_CPU, 1, ""), 0, 1);
		for (int i = 0; i < ALIKE; i++) {
			snprintf(stack, sizeof(stack), "f%d;main", i);
			world_row(tables, stack, "", 1 + view);
		}
	}
	source = world_source(world);
	for (size_t i = 0; i < source.segments_count; i++)
		world->segments[i].partition_key_hash = 1;
	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, NULL), 0);
	params.selector = &selector;
	if (query_tree(&source, &params, &tree, &err))
		fail_msg("%s", err.message);
	assert_int_equal(tree->total, ALIKE * 36);
	tree_free(tree);
	selector_free(&selector);
}

#define MANY 2000
#define WIDE 10000

/* Counters for each group and stack would be 76 MiB, where 12,000 are not zero. */
static void many_groups_with_few_stacks_each_need_little_memory(void **state)
{
	struct query_params params = { .to_ns = 100,
				       .limits = { .memory_bytes = (size_t)24 << 20 },
				       .nodes_only = true,
				       .group_by = { SLICE_LITERAL("pod") },
				       .group_by_count = 1 };
	struct world *world = *state;
	struct tree *tree = NULL;
	char labels[32], stack[32];
	struct err err = { 0 };

	world_report(&world->tables[0], world_series(&world->tables[0], WORLD_ON_CPU, 1, "pod=all"),
		     0, 1);
	for (int i = 0; i < WIDE; i++) {
		snprintf(stack, sizeof(stack), "main;f%d", i);
		world_row(&world->tables[0], stack, "", 1);
	}
	for (int i = 0; i < MANY; i++) {
		snprintf(labels, sizeof(labels), "pod=%d", i);
		snprintf(stack, sizeof(stack), "main;f%d", WIDE - 1 - i);
		add(&world->tables[0], labels, 0, stack, "", i + 1);
		add(&world->tables[0], labels, 1, stack, "", 1);
	}
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, &err), 0);
	assert_int_equal(tree->groups_count, MANY + 1);
	assert_int_equal(tree->total, WIDE + MANY * (MANY + 1) / 2 + MANY);
	/* The first is the largest group; then pods by their values: i + 2 of pod i. */
	assert_int_equal(tree->nodes[1].total, WIDE);
	for (uint32_t i = 2, pod = MANY; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->depth != 1)
			continue;
		pod -= node->parent == 0 && node->total <= MANY + 1;
		assert_int_equal(node->total, pod + 2);
	}
	tree_free(tree);
}

/* Sums that leave 64 bits stay at their end, in whatever form a tree is brought. */
static void sums_stop_at_the_largest_value(void **state)
{
	static const struct slice calls[] = { SLICE_LITERAL("main") };
	struct world *world = *state;
	struct tree *tree;
	struct err err;

	add(&world->tables[0], "", 0, "main;a;leaf", "", INT64_MAX - 1);
	add(&world->tables[0], "", 0, "main;b;leaf", "", INT64_MAX - 1);
	tree = world_tree(world, WORLD_ON_CPU, 0, 1);
	assert_int_equal(tree->total, INT64_MAX);
	tree_keep_calls(tree, calls, 1);
	assert_int_equal(tree->total, INT64_MAX);
	tree_free(tree);
	tree = world_tree(world, WORLD_ON_CPU, 0, 1);
	assert_int_equal(tree_invert(tree, (struct slice){ 0 }, 0, &err), 0);
	assert_int_equal(tree->nodes[0].total, INT64_MAX);
	assert_int_equal(tree->nodes[1].total, INT64_MAX); /* leaf, of both */
	assert_int_equal(tree->nodes_count, 6);
	tree_free(tree);
}

/* Random stacks of few functions, so that some are recursive and most are too narrow to be seen. */
static void add_random_stacks(struct world *world)
{
	unsigned seed = 7;

	for (int i = 0; i < 400; i++) {
		struct strbuf stack = { 0 };
		char labels[32];

		snprintf(labels, sizeof(labels), "pod=%d", i % 3);
		for (int depth = 1 + rand_r(&seed) % 12; depth > 0; depth--)
			strbuf_addf(&stack, "f%d%s", rand_r(&seed) % 9, depth > 1 ? ";" : "");
		add(&world->tables[0], labels, 0, strbuf_text(&stack), "", 1 + rand_r(&seed) % 50);
		strbuf_free(&stack);
	}
}

static struct tree *turned_around(struct world *world, bool grouped, const char *function,
				  uint32_t width_px)
{
	struct query_params params = { .to_ns = 100,
				       .group_by = { SLICE_LITERAL("pod") },
				       .group_by_count = grouped,
				       .nodes_only = true };
	struct tree *tree = NULL;
	struct err err = { 0 };

	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, &err), 0);
	assert_int_equal(tree_invert(tree, slice_of(function), width_px, &err), 0);
	return tree;
}

static void a_picture_upside_down_needs_only_what_it_shows(void **state)
{
	static const char *const functions[] = { "", "f3" };

	add_random_stacks(*state);
	for (int i = 0; i < 4; i++) {
		struct tree *whole = turned_around(*state, i & 1, functions[i / 2], 0);
		struct tree *narrow = turned_around(*state, i & 1, functions[i / 2], 60);
		struct strbuf expected = { 0 }, got = { 0 };

		render_binary(whole, 60, &expected);
		render_binary(narrow, 60, &got);
		assert_int_equal(got.len, expected.len);
		assert_memory_equal(strbuf_text(&got), strbuf_text(&expected), expected.len);
		assert_true(narrow->nodes_count < whole->nodes_count);
		assert_int_equal(narrow->nodes_untrimmed, whole->nodes_count);
		strbuf_free(&expected);
		strbuf_free(&got);
		tree_free(whole);
		tree_free(narrow);
	}
}

#define DEEP 2000

static long peak_kb(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* A chain whose functions all have a value has half its length's square nodes upside down. */
static void a_tree_turned_around_keeps_to_its_memory(void **state)
{
	struct world *world = *state;
	struct strbuf stack = { 0 };
	struct tree *tree;
	struct err err;
	long before_kb;

	for (int i = 0; i < DEEP; i++) {
		strbuf_addf(&stack, "%sf%d", i ? ";" : "", i);
		add(&world->tables[0], "", 0, strbuf_text(&stack), "", 1);
	}
	strbuf_free(&stack);
	tree = world_tree(world, WORLD_ON_CPU, 0, 1);
	assert_int_equal(tree->nodes_count, DEEP + 1);
	tree->arena.budget_bytes = tree->arena.used_bytes + ((size_t)1 << 20);
	before_kb = peak_kb();
	assert_int_equal(tree_invert(tree, (struct slice){ 0 }, 0, &err), -ERR_NO_MEMORY);
	assert_in_range(peak_kb() - before_kb, 0, 32 << 10);
	assert_int_equal(tree->nodes_count, DEEP + 1);
	assert_int_equal(tree->total, DEEP);
	tree_free(tree);
}

static void query_over_its_memory_fails_and_says_what_helps(void **state)
{
	struct query_params params = { .to_ns = 100,
				       .limits = { .memory_bytes = 100000 },
				       .group_by = { SLICE_LITERAL("pod") },
				       .group_by_count = 1 };
	struct world *world = *state;
	struct tree *tree = NULL;
	struct err err = { 0 };
	char labels[32], stack[32];

	for (int i = 0; i < 100; i++) {
		snprintf(labels, sizeof(labels), "pod=%d", i);
		snprintf(stack, sizeof(stack), "main;f%d", i);
		add(&world->tables[0], labels, 0, stack, "", 1);
	}
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, &err), -ERR_NO_MEMORY);
	assert_non_null(strstr(err.message, "group by fewer labels"));
	assert_null(tree);
	params.limits.memory_bytes = 0;
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, &err), 0);
	tree_free(tree);
}

static void query_with_any_memory_answers_right_or_fails_cleanly(void **state)
{
	struct world *world = *state;
	size_t refused = 0, told_what_fits = 0;

	for (int i = 0; i < 3; i++)
		for (int at = 0; at < 20; at++)
			add(&world->tables[i], at % 2 ? "pod=a" : "pod=b", at,
			    at % 3 ? "main;run;work" : "main;idle", "thread=t1", 1);
	for (size_t bytes = 1; bytes < 400000; bytes += bytes / 16 + 16) {
		struct query_params params = { .to_ns = 100,
					       .limits = { .memory_bytes = bytes },
					       .group_by = { SLICE_LITERAL("thread") },
					       .group_by_count = 1 };
		struct tree *tree = NULL;
		struct err err = { 0 };
		int rc = world_ask(world, WORLD_ON_CPU, &params, &tree, &err);

		if (!rc) {
			assert_int_equal(tree->total, 60);
			expect(tree, "t1;main;idle 21\nt1;main;run;work 39\n");
			continue;
		}
		assert_int_equal(rc, -ERR_NO_MEMORY);
		assert_non_null(strstr(err.message, "group by fewer labels"));
		told_what_fits += strstr(err.message, "narrow it to") != NULL;
		refused++;
	}
	assert_in_range(refused, 10, 1000);
	assert_in_range(told_what_fits, 1, refused);
}

static void query_cancelled_or_late_fails(void **state)
{
	_Atomic bool cancelled = true;
	struct query_params params = { .to_ns = 100, .limits = { .cancelled = &cancelled } };
	struct world *world = *state;
	struct tree *tree = NULL;

	add(&world->tables[0], "", 0, "main", "", 1);
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, NULL), -ERR_CANCELLED);
	params.limits = (struct query_limits){ .deadline_at_ns = clock_monotonic_ns() - 1 };
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, NULL), -ERR_DEADLINE);
	params.limits = (struct query_limits){ .deadline_at_ns =
						       clock_monotonic_ns() + 60 * CLOCK_NS_PER_S };
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, NULL), 0);
	tree_free(tree);
}

static void query_without_a_type_is_invalid(void **state)
{
	struct query_params params = { .to_ns = 100 };
	struct tree *tree = NULL;

	assert_int_equal(world_ask(*state, "{comm=\"x\"}", &params, &tree, NULL), -ERR_INVALID);
	params.group_by_count = QUERY_GROUP_BY_MAX + 1;
	assert_int_equal(world_ask(*state, WORLD_ON_CPU, &params, &tree, NULL), -ERR_LIMIT);
}

static void query_spells_its_selector_in_one_way(void **state)
{
	struct tree *tree = world_tree(
		*state, "  " WORLD_ON_CPU " { comm = 'a\\\\b\"' , \"k8s pod\"!~\"x\\d\" , } ", 0,
		1);

	assert_int_equal(tree->query.len, strlen((const char *)tree->query.data));
	assert_string_equal(tree->query.data,
			    WORLD_ON_CPU "{comm=\"a\\\\b\\\"\",\"k8s pod\"!~\"x\\\\d\"}");
	tree_free(tree);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(query_takes_reports_from_start_up_to_but_without_the_end),
		TEST(query_finds_few_stacks_among_many),
		TEST(query_adds_up_equal_stacks_of_all_views),
		TEST(query_without_data_is_an_empty_tree),
		TEST(query_matches_a_missing_label_as_the_empty_string),
		TEST(query_matches_sample_labels_of_rows_whose_series_lacks_the_name),
		TEST(query_groups_by_labels_of_series_and_samples),
		TEST(query_takes_the_mean_of_a_gauge_per_series),
		TEST(query_rounds_a_gauge_half_away_from_zero_once_for_all),
		TEST(query_of_few_objects_adds_up_to_their_mean),
		TEST(query_at_a_moment_takes_the_nearest_report_of_each_series),
		TEST(query_keeps_a_function_whole_over_addresses_and_builds),
		TEST(query_tells_interpreted_functions_apart_by_file),
		TEST(query_calls_unnamed_code_by_its_address),
		TEST(query_counts_a_stack_without_frames),
		TEST(query_stops_sums_at_the_ends_of_64_bits),
		TEST(query_answers_to_pyroscopes_names_of_cpu_time),
		TEST(types_of_what_is_left_out_hide_no_alias),
		TEST(each_selector_has_its_own_alias),
		TEST(queries_share_their_memory),
		TEST(sums_stop_at_the_largest_value),
		TEST(segments_of_equal_stacks_need_little_memory),
		TEST(many_groups_with_few_stacks_each_need_little_memory),
		TEST(a_picture_upside_down_needs_only_what_it_shows),
		TEST(a_tree_turned_around_keeps_to_its_memory),
		TEST(query_over_its_memory_fails_and_says_what_helps),
		TEST(query_with_any_memory_answers_right_or_fails_cleanly),
		TEST(query_cancelled_or_late_fails),
		TEST(query_without_a_type_is_invalid),
		TEST(query_spells_its_selector_in_one_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
