/* SPDX-License-Identifier: Apache-2.0 */
/* What answers look like: texts, JSON, and the binary format read back as its document says. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/query/render/measure.h"
#include "server/query/render/render.h"

#define HEAP "memory:inuse_space:bytes:space:bytes"
#define START 1700000000000000000ll

/* main calls run (which recurses through main) and idle. */
static void fill(struct world *world, const char *type)
{
	struct tables *tables = &world->tables[0];

	world_report(tables, world_series(tables, type, 10000000, "comm=nginx"), START,
		     10000000000);
	world_row(tables, "main@/bin/app;run@/bin/app", "", 600);
	world_row(tables, "main@/bin/app;run@/bin/app;main@/bin/app", "", 300);
	world_row(tables, "main@/bin/app;idle;x", "", 96);
	world_row(tables, "main@/bin/app;sem;i", "", 3);
	world_row(tables, "@/lib/libx.so:0x10", "", 1);
}

static int set_up(void **state)
{
	*state = malloc(sizeof(struct world));
	world_init(*state, 1);
	return 0;
}

static int tear_down(void **state)
{
	world_free(*state);
	free(*state);
	return 0;
}

static void expect(struct strbuf *out, const char *text)
{
	assert_string_equal(strbuf_text(out), text);
	strbuf_free(out);
}

static void top_counts_recursion_once(void **state)
{
	struct strbuf out = { 0 };
	struct tree *tree;

	fill(*state, WORLD_ON_CPU);
	tree = world_tree(*state, WORLD_ON_CPU, 0, INT64_MAX);
	render_top(tree, 0, &out);
	expect(&out, "      flat  flat%   sum%        cum   cum%\n"
		     "       600 60.00% 60.00%        900 90.00%  run\n"
		     "       300 30.00% 90.00%        999 99.90%  main\n"
		     "        96  9.60% 99.60%         96  9.60%  x\n"
		     "         3   0.3% 99.90%          3   0.3%  i\n"
		     "         1   0.1%   100%          1   0.1%  0x10 [libx.so]\n"
		     "         0     0%   100%         96  9.60%  idle\n"
		     "         0     0%   100%          3   0.3%  sem\n");
	render_top(tree, 1, &out);
	expect(&out, "      flat  flat%   sum%        cum   cum%\n"
		     "       600 60.00% 60.00%        900 90.00%  run\n");
	tree_free(tree);
}

static void top_of_groups_has_a_table_for_each(void **state)
{
	struct tables *tables = &((struct world *)*state)->tables[0];
	struct strbuf out = { 0 };
	struct tree *tree;

	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, "comm=a"), 0, 1);
	world_row(tables, "main;run;main", "", 60);
	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, "comm=b"), 0, 1);
	world_row(tables, "main;idle", "", 30);
	world_row(tables, "main", "", 10);
	tree = world_tree_by(*state, WORLD_ON_CPU, 0, INT64_MAX, "comm");
	render_top_groups(tree, 0, &out);
	expect(&out, "a: 60 60.00%\n"
		     "      flat  flat%   sum%        cum   cum%\n"
		     "        60 60.00% 60.00%         60 60.00%  main\n"
		     "         0     0% 60.00%         60 60.00%  run\n"
		     "\n"
		     "b: 40 40.00%\n"
		     "      flat  flat%   sum%        cum   cum%\n"
		     "        30 30.00% 30.00%         30 30.00%  idle\n"
		     "        10 10.00% 40.00%         40 40.00%  main\n");
	tree_free(tree);
}

static void top_of_nothing_is_its_header(void **state)
{
	struct tree *tree = world_tree(*state, WORLD_ON_CPU, 0, 1);
	struct strbuf out = { 0 };

	render_top(tree, 0, &out);
	expect(&out, "      flat  flat%   sum%        cum   cum%\n");
	tree_free(tree);
}

static void folded_keeps_names_apart_and_on_one_line(void **state)
{
	struct tables *tables = &((struct world *)*state)->tables[0];
	struct frame frame = { .function = tables_string(tables, SLICE_LITERAL("La;b\nc")) };
	struct strbuf out = { 0 };
	struct tree *tree;

	world_report(tables, world_series(tables, WORLD_ON_CPU, 1, ""), 0, 1);
	assert_true(tables_row(tables, tables_node(tables, 0, tables_frame(tables, &frame)), 0,
			       &(int64_t){ 5 }));
	tree = world_tree(*state, WORLD_ON_CPU, 0, 1);
	render_folded(tree, &out);
	expect(&out, "La:b\\u000ac 5\n");
	tree_free(tree);
}

static void flamegraph_text_sums_up_what_is_small(void **state)
{
	struct strbuf out = { 0 };
	struct tree *tree;

	fill(*state, HEAP);
	tree = world_tree(*state, HEAP, 0, INT64_MAX);
	render_flamegraph_text(tree, 0.05, &out);
	expect(&out, "     1000B   100%  total\n"
		     "      999B 99.90%    main\n"
		     "      900B 90.00%      run\n"
		     "      300B 30.00%        main\n"
		     "       96B  9.60%      idle\n"
		     "       96B  9.60%        x\n"
		     "        3B   0.3%      (1 more)\n"
		     "        1B   0.1%    (1 more)\n");
	render_flamegraph_text(tree, 0, &out);
	assert_non_null(strstr(strbuf_text(&out), "       1B   0.1%    0x10 [libx.so]\n"));
	assert_null(strstr(strbuf_text(&out), "more"));
	strbuf_free(&out);
	tree_free(tree);
}

static void json_says_it_all(void **state)
{
	struct tables *tables = &((struct world *)*state)->tables[0];
	struct strbuf out = { 0 };
	struct tree *tree;

	world_report(tables, world_series(tables, WORLD_ON_CPU, 10000000, "comm=nginx"), START,
		     10000000000);
	world_row(tables, "main@/bin/app", "", 3);
	tree = world_tree_by(*state, WORLD_ON_CPU, START, START + 60000000000, "comm");
	tree->parts_unreadable = 1;
	render_json(tree, &out);
	expect(&out,
	       "{\"query\":\"" WORLD_ON_CPU "\",\"type\":\"" WORLD_ON_CPU "\",\"unit\":\"count\","
	       "\"period\":10000000,\"period_unit\":\"nanoseconds\",\"delta\":true,"
	       "\"group_by\":[\"comm\"],\"from_ms\":1700000000000,\"to_ms\":1700000060000,"
	       "\"start_ms\":1700000000000,\"duration_ms\":10000,\"total\":3,\"filtered\":0,"
	       "\"filters\":\"\",\"reports\":1,\"rows\":1,\"partial\":true,\"parts_unreadable\":1,"
	       "\"pending\":0,"
	       "\"unresolved\":{\"value\":0,\"leaf\":0,\"reasons_total\":0,\"reasons\":[]},"
	       "\"functions\":[{\"name\":\"total\",\"kind\":\"unknown\"},"
	       "{\"name\":\"nginx\",\"label\":true},"
	       "{\"name\":\"main\",\"kind\":\"native\",\"mapping\":\"/bin/app\"}],"
	       "\"nodes\":[{\"function\":0,\"parent\":0,\"depth\":0,\"self\":0,\"total\":3},"
	       "{\"function\":1,\"parent\":0,\"depth\":1,\"self\":0,\"total\":3},"
	       "{\"function\":2,\"parent\":1,\"depth\":2,\"self\":3,\"total\":3}]}\n");
	tree_free(tree);
}

static void series_are_written_as_json_and_text(void **state)
{
	struct tables *tables = &((struct world *)*state)->tables[0];
	struct query_source source;
	struct query_range_params params = {
		.base = { .from_ns = START, .to_ns = START + 60000000000 }, .step_ns = 10000000000
	};
	struct query_series_set set;
	struct selector selector;
	struct strbuf out = { 0 };

	world_report(tables, world_series(tables, WORLD_ON_CPU, 10, "comm=a"), START, 1);
	world_row(tables, "main", "", 25);
	source = world_source(*state);
	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, NULL), 0);
	params.base.selector = &selector;
	assert_int_equal(query_series(&source, &params, &set, NULL), 0);
	render_series_json(&set, false, &out);
	expect(&out, "{\"type\":\"" WORLD_ON_CPU "\",\"unit\":\"count\",\"period\":10,"
		     "\"period_unit\":\"nanoseconds\",\"delta\":true,\"step_ms\":10000,"
		     "\"series\":[{\"labels\":{\"comm\":\"a\"},"
		     "\"points\":[[1700000000000,25,2.5,1]]}]}\n");
	render_series_text(&set, false, &out);
	expect(&out, "{comm=\"a\"}\n  2023-11-14T22:13:20Z           25            2.5\n");
	/* A dispersion of 4 is assumed of one point. */
	render_series_text(&set, true, &out);
	expect(&out, "{comm=\"a\"}\n  2023-11-14T22:13:20Z           25            2.5"
		     "           12           54\n");
	set.has_times = true; /* not counted: nothing can be said */
	render_series_text(&set, true, &out);
	expect(&out, "{comm=\"a\"}\n  2023-11-14T22:13:20Z           25            2.5"
		     "            -            -\n");
	query_series_free(&set);
	selector_free(&selector);
}

static void values_are_written_as_pprof_does(void **state)
{
	static const struct {
		int64_t value;
		const char *unit, *text;
	} cases[] = {
		{ 0, "nanoseconds", "0" },	   { 1, "nanoseconds", "1ns" },
		{ 1500, "nanoseconds", "1.50us" }, { 90000000000, "nanoseconds", "90s" },
		{ 7200000000000, "ns", "2hrs" },   { 1536, "bytes", "1.50kB" },
		{ -2048, "byte", "-2kB" },	   { 7, "count", "7" },
		{ 12, "objects", "12" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf out = { 0 };

		measure_value_auto(&out, cases[i].value, slice_of(cases[i].unit));
		expect(&out, cases[i].text);
	}
}

/* ---- a reader of docs/formats/flamegraph.md ---- */

struct reading {
	struct slice bytes;
	size_t at;
};

static uint32_t u32_at(struct slice bytes, size_t at)
{
	uint32_t value = 0;

	assert_true(at + 4 <= bytes.len);
	for (int i = 3; i >= 0; i--)
		value = value << 8 | (uint8_t)bytes.data[at + (size_t)i];
	return value;
}

static uint64_t varint(struct reading *reading)
{
	uint64_t value = 0;

	for (int shift = 0;; shift += 7) {
		uint8_t byte;

		assert_true(reading->at < reading->bytes.len && shift < 64);
		byte = (uint8_t)reading->bytes.data[reading->at++];
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

static struct slice section(struct slice file, uint32_t type)
{
	uint32_t count = u32_at(file, 8);

	assert_memory_equal(file.data, "FRNF", 4);
	assert_int_equal(u32_at(file, 4), 1);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t offset = u32_at(file, 16 + 12 * i), len = u32_at(file, 20 + 12 * i);

		assert_int_equal(offset % 8, 0);
		assert_true((size_t)offset + len <= file.len);
		if (u32_at(file, 12 + 12 * i) == type)
			return slice_from(file.data + offset, len);
	}
	fail_msg("section %u is missing", type);
	return (struct slice){ 0 };
}

static struct slice string_at(struct slice strings, uint64_t id)
{
	uint32_t count = u32_at(strings, 0);
	uint32_t from = id ? u32_at(strings, 4 * id) : 0, to = u32_at(strings, 4 * id + 4);

	assert_true(id < count && from <= to && 4 + 4 * (size_t)count + to <= strings.len);
	return slice_from(strings.data + 4 + 4 * (size_t)count + from, to - from);
}

/* Each node on a line: indent, name (or "..." when trimmed), self value, flags. */
static void read_back(struct slice file, struct strbuf *out)
{
	struct slice strings = section(file, 2), names[16];
	struct reading functions = { section(file, 3), 0 }, nodes = { section(file, 4), 0 };
	size_t count = 0;

	while (functions.at < functions.bytes.len) {
		names[count++] = string_at(strings, varint(&functions));
		for (int i = 0; i < 5; i++)
			varint(&functions);
	}
	assert_int_equal(string_at(strings, 0).len, 0);
	while (nodes.at < nodes.bytes.len) {
		int depth = (int)varint(&nodes);
		uint64_t function = varint(&nodes), self = varint(&nodes), flags = varint(&nodes);

		assert_true(function < count);
		strbuf_addf(out, "%*s%.*s %lld %d\n", 2 * depth, "",
			    SLICE_FMT(flags & 4 ? SLICE_LITERAL("...") : names[function]),
			    (long long)(self >> 1 ^ -(self & 1)), (int)flags);
	}
}

static void binary_reads_back(void **state)
{
	struct strbuf bytes = { 0 }, out = { 0 };
	struct slice header;
	struct tree *tree;

	fill(*state, WORLD_ON_CPU);
	tree = world_tree_by(*state, WORLD_ON_CPU, 0, INT64_MAX, "comm");
	render_binary(tree, 0, &bytes);
	read_back(strbuf_slice(&bytes), &out);
	expect(&out, "total 0 0\n"
		     "  nginx 0 2\n"
		     "    main 0 0\n"
		     "      run 600 0\n"
		     "        main 300 0\n"
		     "      idle 0 0\n"
		     "        x 96 0\n"
		     "      sem 0 0\n"
		     "        i 3 0\n"
		     "    0x10 [libx.so] 1 0\n");
	header = section(strbuf_slice(&bytes), 1);
	strbuf_add_slice(&out, header);
	assert_non_null(strstr(strbuf_text(&out), "\"nodes\":10,\"nodes_total\":10,\"depth\":4,"
						  "\"functions\":9,\"trimmed\":0,\"reports\":1"));
	strbuf_free(&out);
	strbuf_free(&bytes);
	tree_free(tree);
}

/* A picture knows the reasons by other means than a whole tree does. */
static void pictures_count_any_number_of_reasons_why_names_are_missing(void **state)
{
	struct strbuf stack = { 0 }, texts[2] = { 0 };
	struct world *world = *state;

	world_report(&world->tables[0], world_series(&world->tables[0], WORLD_ON_CPU, 1, ""), 0,
		     10);
	for (uint32_t i = 0; i < 100; i++) {
		if (i)
			strbuf_add_byte(&stack, ';');
		strbuf_addf(&stack, "@/lib/number%u.so:0x%x", i % 45, 0x1000 + i);
		world_row(&world->tables[0], strbuf_text(&stack), "", 1 + i);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct query_params params = { .to_ns = INT64_MAX,
					       .nodes_only = true,
					       .width_px = i ? 1000000 : 0 };
		struct tree *tree;
		struct err err;

		assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, &err), 0);
		assert_int_equal(tree->cut != NULL, i);
		assert_int_equal(tree->unresolved_value, tree->total);
		for (uint32_t at = 0; at < tree->unresolved_count; at++)
			strbuf_addf(&texts[i], "%.*s %lld\n",
				    SLICE_FMT(tree->unresolved[at].mapping),
				    (long long)tree->unresolved[at].value);
		tree_free(tree);
	}
	assert_string_equal(strbuf_text(&texts[0]), strbuf_text(&texts[1]));
	assert_int_equal(strncmp(strbuf_text(&texts[0]), "/lib/number0.so 5050\n", 21), 0);
	strbuf_free(&stack);
	strbuf_free(&texts[0]);
	strbuf_free(&texts[1]);
}

static void binary_sums_up_what_is_below_half_a_pixel(void **state)
{
	struct strbuf bytes = { 0 }, out = { 0 };
	struct slice header;
	struct tree *tree;
	struct err err;

	fill(*state, WORLD_ON_CPU);
	for (uint32_t width_px = 0; width_px <= 10; width_px += 10) {
		struct query_params params = { .to_ns = INT64_MAX,
					       .nodes_only = true,
					       .width_px = width_px };

		assert_int_equal(world_ask(*state, WORLD_ON_CPU, &params, &tree, &err), 0);
		assert_int_equal(tree->cut != NULL, width_px != 0);
		render_binary(tree, 10, &bytes); /* half a pixel is 50 */
		read_back(strbuf_slice(&bytes), &out);
		expect(&out, "total 0 0\n"
			     "  main 0 0\n"
			     "    run 600 0\n"
			     "      main 300 0\n"
			     "    idle 0 0\n"
			     "      x 96 0\n"
			     "    ... 3 4\n"
			     "  ... 1 4\n");
		header = section(strbuf_slice(&bytes), 1);
		strbuf_add_slice(&out, header);
		assert_non_null(strstr(strbuf_text(&out),
				       "\"nodes\":8,\"nodes_total\":9,\"depth\":3,"
				       "\"functions\":5,\"trimmed\":4,\"reports\":1"));
		strbuf_clear(&out);
		strbuf_clear(&bytes);
		tree_free(tree);
	}
	strbuf_free(&out);
	strbuf_free(&bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(top_counts_recursion_once),
		TEST(top_of_groups_has_a_table_for_each),
		TEST(top_of_nothing_is_its_header),
		TEST(folded_keeps_names_apart_and_on_one_line),
		TEST(flamegraph_text_sums_up_what_is_small),
		TEST(json_says_it_all),
		TEST(series_are_written_as_json_and_text),
		TEST(values_are_written_as_pprof_does),
		TEST(binary_reads_back),
		TEST(binary_sums_up_what_is_below_half_a_pixel),
		TEST(pictures_count_any_number_of_reasons_why_names_are_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
