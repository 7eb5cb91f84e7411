/* SPDX-License-Identifier: Apache-2.0 */
/* Filters as text, and what they leave of a tree and of its totals. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect_spelling(const char *text, const char *wanted)
{
	struct filter_list filters = { 0 };
	struct strbuf out = { 0 };
	struct err err = { 0 };

	if (filter_list_parse(&filters, slice_of(text), &err))
		fail_msg("%s: %s", text, err.message);
	filter_list_format(&out, &filters);
	assert_string_equal(strbuf_text(&out), wanted);
	strbuf_free(&out);
	filter_list_free(&filters);
}

static void filters_have_one_spelling(void **state)
{
	(void)state;
	expect_spelling("", "");
	expect_spelling("show-stack json", "show-stack function*=\"json\"");
	expect_spelling("SS: std::vector<int> ", "show-stack function*=\"std::vector<int>\"");
	expect_spelling("HF kind = go , line!=3", "hide-frame kind=\"go\",line!=\"3\"");
	expect_spelling("SFF binary^=lib;HS file!~\".*\\\\.py\";",
			"show-from binary^=\"lib\"; hide-stack file!~\".*\\\\.py\"");
	expect_spelling("SF a=b", "show-frame function*=\"a=b\"");
}

static void expect_refusal(const char *text, const char *wanted)
{
	struct filter_list filters = { 0 };
	struct err err = { 0 };

	assert_int_not_equal(filter_list_parse(&filters, slice_of(text), &err), 0);
	assert_string_equal(err.message, wanted);
	filter_list_free(&filters);
}

static void what_is_no_filter_is_refused_with_its_place(void **state)
{
	struct strbuf many = { 0 };

	(void)state;
	expect_refusal("json", "filter \"json\": column 1: expected show-stack, hide-stack, "
			       "show-from, show-frame or hide-frame");
	expect_refusal("show-stack", "filter \"show-stack\": column 11: expected a value");
	expect_refusal("SS a,", "filter \"SS a,\": column 6: expected a value");
	expect_refusal("SS \"a", "filter \"SS \"a\": column 6: expected a closing quote");
	expect_refusal(
		"SS \"a\" b",
		"filter \"SS \"a\" b\": column 8: expected ',' and a condition, or ';' and a "
		"filter");
	expect_refusal("SS line=x", "filter: line \"x\" is not a number");
	expect_refusal("SS line*=1", "filter: line takes = and != only");
	expect_refusal("SS address=0x12345678123456789",
		       "filter: address \"0x12345678123456789\" is not a number");
	expect_refusal("SS function=~(", "filter: regular expression \"(\": missing ): (");
	for (int i = 0; i <= FILTERS_MAX; i++)
		strbuf_add_text(&many, "SS a;");
	expect_refusal(strbuf_text(&many), "filter: more than 30 filters");
	strbuf_free(&many);
}

static void expect_filtered(struct world *world, const char *text, const char *folded,
			    int64_t total, int64_t filtered)
{
	struct query_params params = { .to_ns = INT64_MAX };
	struct filter_list filters = { 0 };
	struct tree *tree;
	char *have;

	assert_int_equal(filter_list_parse(&filters, slice_of(text), NULL), 0);
	params.filters = &filters;
	assert_int_equal(world_ask(world, WORLD_ON_CPU, &params, &tree, NULL), 0);
	have = world_folded(tree);
	assert_string_equal(have, folded);
	assert_int_equal(tree->total, total);
	assert_int_equal(tree->filtered, filtered);
	free(have);
	tree_free(tree);
	filter_list_free(&filters);
}

static void hidden_stacks_are_counted_and_hidden_frames_count_for_their_callers(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, "comm=x"), 1,
		     1);
	world_row(&world.tables[0], "main@/bin/app;read@/lib/libc.so.6", "", 1);
	world_row(&world.tables[0], "main@/bin/app;parse@/bin/app;read@/lib/libc.so.6", "", 2);
	world_row(&world.tables[0], "main@/bin/app;idle@/bin/app", "", 4);
	expect_filtered(&world, "show-stack parse", "main;parse;read 2\n", 2, 5);
	expect_filtered(&world, "hide-stack function=idle", "main;parse;read 2\nmain;read 1\n", 3,
			4);
	expect_filtered(&world, "show-stack function!=idle", "main;parse;read 2\nmain;read 1\n", 3,
			4);
	expect_filtered(&world, "hide-frame binary=libc.so.6",
			"main 1\nmain;idle 4\nmain;parse 2\n", 7, 0);
	expect_filtered(&world, "show-frame binary=libc.so.6", "[no frames] 4\nread 3\n", 7, 0);
	expect_filtered(&world, "show-from read", "read 3\n", 3, 4);
	expect_filtered(&world, "show-from parse;hide-frame read", "parse 2\n", 2, 5);
	expect_filtered(&world, "show-stack binary=/lib/libc.so.6,function=main", "", 0, 7);
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_have_one_spelling),
		cmocka_unit_test(what_is_no_filter_is_refused_with_its_place),
		cmocka_unit_test(
			hidden_stacks_are_counted_and_hidden_frames_count_for_their_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
