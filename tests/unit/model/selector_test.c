/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors: what is understood, what is refused and where, what matches, how they are spelled. */
#include "model/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"

#define TYPE "on_cpu:samples:count:cpu:nanoseconds:delta"

static void selector_understands_and_spells_back(void **state)
{
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{ TYPE, TYPE },
		{ "  " TYPE "  ", TYPE },
		{ TYPE "{}", TYPE },
		{ "", "{}" },
		{ "{ }", "{}" },
		{ TYPE "{comm=\"x\"}", TYPE "{comm=\"x\"}" },
		{ TYPE " { comm = 'x' , } ", TYPE "{comm=\"x\"}" },
		{ "{a!=\"b\",c=~\"d.*\",e!~\"f\"}", "{a!=\"b\",c=~\"d.*\",e!~\"f\"}" },
		{ "{\"k8s.pod/name\"=\"x\"}", "{k8s.pod/name=\"x\"}" },
		{ "{\"a name\"=\"x\"}", "{\"a name\"=\"x\"}" },
		{ "{a=\"\\\\ \\\" \\n \\t\"}", "{a=\"\\\\ \\\" \\n \t\"}" },
		{ "{a=~\"\\\\d+\"}", "{a=~\"\\\\d+\"}" },
		{ "{a=~`\\d\"'`,b='\"'}", "{a=~\"\\\\d\\\"'\",b=\"\\\"\"}" },
		{ "{a=~\"\\d+\"}", "{a=~\"\\\\d+\"}" },
		{ "{a=\"pr\\u006fd\"}", "{a=\"prod\"}" },
		{ "{a=\"\\x41\\102\\U00000043\"}", "{a=\"ABC\"}" },
		{ "{a=\"gr\\u00f6\\u00dfe \\U0001f525\"}", "{a=\"größe 🔥\"}" },
		{ "{a=\"\\xc3\\xb6\"}", "{a=\"ö\"}" },
		/* What tells no character stays. */
		{ "{a=\"\\x4\\ud800\"}", "{a=\"\\\\x4\\\\ud800\"}" },
		{ "{caf\xc3\xa9=\"\xe2\x98\x83\"}", "{caf\xc3\xa9=\"\xe2\x98\x83\"}" },
		{ "memory:inuse_space:bytes::", "memory:inuse_space:bytes::" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct selector selector, again;
		struct strbuf first = { 0 }, second = { 0 };
		struct err err = { 0 };

		if (selector_parse(slice_of(cases[i].text), &selector, &err))
			fail_msg("%s", err.message);
		selector_format(&first, &selector);
		assert_string_equal(strbuf_text(&first), cases[i].canonical);
		assert_int_equal(selector_parse(strbuf_slice(&first), &again, NULL), 0);
		selector_format(&second, &again);
		assert_string_equal(strbuf_text(&second), cases[i].canonical);
		strbuf_free(&first);
		strbuf_free(&second);
		selector_free(&selector);
		selector_free(&again);
	}
}

static void selector_names_the_column_that_it_does_not_understand(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{", "column 2: expected a label name" },
		{ "{comm}", "column 6: expected one of = != =~ !~" },
		{ "{comm=}", "column 7: expected a quoted value" },
		{ "{comm=x}", "column 7: expected a quoted value" },
		{ "{comm=\"x}", "column 10: expected a closing quote" },
		{ "{comm=\"x\\", "column 10: expected a closing quote" },
		{ "{comm=\"x\" pod=\"y\"}", "column 11: expected ',' or '}'" },
		{ "{comm=\"x\"", "column 10: expected ',' or '}'" },
		{ "{} x", "column 4: expected the end" },
		{ TYPE " x", "column 44: expected '{' or the end" },
		{ "{\"\"=\"x\"}", "expected a label name" },
		{ "{comm!\"x\"}", "expected one of = != =~ !~" },
		{ "on_cpu", "profile type \"on_cpu\": expected name:sample_type" },
		{ "{a=~\"(\"}", "regular expression \"(\": missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct selector selector = { 0 };
		struct err err = { 0 };

		assert_int_equal(selector_parse(slice_of(cases[i].text), &selector, &err),
				 -ERR_INVALID);
		if (!strstr(err.message, cases[i].message))
			fail_msg("%s: %s", cases[i].text, err.message);
		assert_null(selector.bytes);
	}
}

static void selector_has_limits(void **state)
{
	struct strbuf text = { 0 };
	struct selector selector;
	struct err err = { 0 };

	(void)state;
	strbuf_add_byte(&text, '{');
	for (int i = 0; i <= SELECTOR_MATCHERS_MAX; i++)
		strbuf_add_text(&text, "a=\"b\",");
	strbuf_add_byte(&text, '}');
	assert_int_equal(selector_parse(strbuf_slice(&text), &selector, &err), -ERR_LIMIT);
	while (text.len <= SELECTOR_BYTES_MAX)
		strbuf_add_byte(&text, ' ');
	assert_int_equal(selector_parse(strbuf_slice(&text), &selector, &err), -ERR_LIMIT);
	assert_int_equal(selector_parse(slice_from("{a=\"\xff\"}", 7), &selector, &err),
			 -ERR_INVALID);
	assert_int_equal(selector_parse(slice_from("{a=\"\0\"}", 7), &selector, &err),
			 -ERR_INVALID);
	strbuf_free(&text);
}

static void matchers_are_anchored_and_dot_matches_newlines(void **state)
{
	static const struct {
		const char *matcher, *value;
		bool matches;
	} cases[] = {
		{ "{a=\"x\"}", "x", true },	   { "{a=\"x\"}", "xx", false },
		{ "{a!=\"x\"}", "", true },	   { "{a!=\"x\"}", "x", false },
		{ "{a=~\"x\"}", "xx", false },	   { "{a=~\"x.*\"}", "xx", true },
		{ "{a=~\"a|bc\"}", "abc", false }, { "{a=~\"a|bc\"}", "bc", true },
		{ "{a=~\"a.b\"}", "a\nb", true },  { "{a=~\"\"}", "", true },
		{ "{a!~\"x.*\"}", "", true },	   { "{a!~\"x.*\"}", "xy", false },
		{ "{a=~\"(?i)X\"}", "x", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct selector selector;

		assert_int_equal(selector_parse(slice_of(cases[i].matcher), &selector, NULL), 0);
		assert_int_equal(matcher_matches(&selector.matchers[0], slice_of(cases[i].value)),
				 cases[i].matches);
		selector_free(&selector);
	}
}

static void selector_matches_label_sets_with_missing_labels_as_empty(void **state)
{
	struct tables tables;
	struct tables_view view;
	struct label label;
	struct selector selector;
	uint32_t set;

	(void)state;
	tables_init(&tables);
	label = (struct label){ .name = tables_string(&tables, SLICE_LITERAL("comm")),
				.value = tables_string(&tables, SLICE_LITERAL("nginx")) };
	set = tables_label_set(&tables, &label, 1);
	view = tables_view_of(&tables);
	assert_int_equal(selector_parse(slice_of("{comm=\"nginx\",pod=\"\"}"), &selector, NULL), 0);
	assert_true(selector_matches(&selector, &view, set));
	assert_false(selector_matches(&selector, &view, 0));
	selector_free(&selector);
	assert_int_equal(selector_parse(slice_of("{pod!=\"\"}"), &selector, NULL), 0);
	assert_false(selector_matches(&selector, &view, set));
	selector_free(&selector);
	tables_free(&tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selector_understands_and_spells_back),
		cmocka_unit_test(selector_names_the_column_that_it_does_not_understand),
		cmocka_unit_test(selector_has_limits),
		cmocka_unit_test(matchers_are_anchored_and_dot_matches_newlines),
		cmocka_unit_test(selector_matches_label_sets_with_missing_labels_as_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
