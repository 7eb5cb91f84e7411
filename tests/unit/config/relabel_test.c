/* SPDX-License-Identifier: Apache-2.0 */
/* Relabelling: what Prometheus' own tests demand (model/relabel/relabel_test.go), and its errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "config/md5.h"
#include "config/document.h"
#include "config/letter_case.h"
#include "config/relabel.h"

/* "a=foo b=bar" */
static void fill(struct rule_labels *set, const char *text)
{
	struct slice rest = slice_of(text), pair;

	rule_labels_init(set);
	while (rest.len) {
		struct slice value, name;

		pair = slice_cut(rest, ' ', &rest);
		name = slice_cut(pair, '=', &value);
		rule_labels_put(set, name, value);
	}
	rule_labels_sort(set);
}

static int read_rules(const char *yaml, struct relabel **ret, struct err *err)
{
	struct document *document;
	int rc = document_parse(slice_of(yaml), "t.yml", &document, err);

	if (rc)
		return rc;
	rc = relabel_read(document, document_root(document), ret, err);
	document_free(document);
	return rc;
}

static void check(const char *rules, const char *before, const char *after)
{
	struct rule_labels set, wanted;
	struct relabel *relabel;
	struct err err;
	bool kept;

	if (read_rules(rules, &relabel, &err))
		fail_msg("%s", err.message);
	fill(&set, before);
	kept = relabel_apply(relabel, &set, NULL);
	assert_int_equal(kept, after != NULL);
	if (after) {
		fill(&wanted, after);
		rule_labels_sort(&set);
		if (!rule_labels_equal(&set, &wanted)) {
			for (size_t i = 0; i < set.count; i++)
				print_error("%.*s=%.*s\n", SLICE_FMT(set.labels[i].name),
					    SLICE_FMT(set.labels[i].value));
			fail_msg("not %s: %s", after, rules);
		}
		rule_labels_free(&wanted);
	}
	rule_labels_free(&set);
	relabel_free(relabel);
}

static void replace_expands_groups(void **state)
{
	(void)state;
	check("[{source_labels: [a], target_label: d, separator: ;, regex: 'f(.*)', replacement: "
	      "'ch${1}-ch${1}'}]",
	      "a=foo b=bar c=baz", "a=foo b=bar c=baz d=choo-choo");
	check("[{source_labels: [a, b], target_label: a, regex: 'f(.*);(.*)r', replacement: "
	      "'b${1}${2}m'}, {source_labels: [c, a], target_label: d, regex: '(b).*b(.*)ba(.*)', "
	      "replacement: '$1$2$2$3'}]",
	      "a=foo b=bar c=baz", "a=boobam b=bar c=baz d=boooom");
	check("[{source_labels: [a], regex: '.*(b).*', target_label: d, replacement: $1}]", "a=boo",
	      "a=boo d=b");
	check("[{source_labels: [a], regex: 'f', target_label: b, replacement: bar}]", "a=boo b=x",
	      "a=boo b=x");
	check("[{target_label: c, replacement: all}]", "a=1", "a=1 c=all");
	check("[{source_labels: [a], target_label: copy}]", "a=1", "a=1 copy=1");
	check("[{source_labels: [nothing], target_label: a}]", "a=1 b=2", "b=2");
	check("[{source_labels: [a], regex: '(?P<x>.)(?P<long_1>.*)', target_label: b, "
	      "replacement: "
	      "'$long_1.${x}$$1$nope'}]",
	      "a=boo", "a=boo b=oo.b$1");
	check("[{source_labels: [a], regex: (.*), target_label: b, replacement: '$-${1$1'}]", "a=x",
	      "a=x b=$-${1x");
	check("[{source_labels: [a], regex: (x)?(y), target_label: b, replacement: '<$1$2$3$01>'}]",
	      "a=y", "a=y b=<y>");
}

static void the_target_of_replace_may_have_groups(void **state)
{
	static const char *const rule =
		"[{source_labels: [a], regex: 'some-([^-]+)-([^,]+)', target_label: '${1}', "
		"replacement: '${2}'}]";

	(void)state;
	check(rule, "a=some-name-value", "a=some-name-value name=value");
	check(rule, "a=some-name-0", "a=some-name-0 name=0");
	check(rule, "a=some-2-0", "a=some-2-0"); /* no name of a label: left alone */
	check("[{source_labels: [a], regex: 'some-([^-]+)-([^,]+)', target_label: '${3}', "
	      "replacement: '${1}'}]",
	      "a=some-name-value", "a=some-name-value");
}

static void keep_and_drop_look_at_all_of_the_text(void **state)
{
	(void)state;
	check("[{source_labels: [a], regex: '.*o.*', action: drop}]", "a=foo", NULL);
	check("[{source_labels: [a], regex: 'o', action: drop}]", "a=foo", "a=foo");
	check("[{source_labels: [a], regex: 'foo|bar', action: keep}]", "a=foo", "a=foo");
	check("[{source_labels: [a], regex: 'fo|ba', action: keep}]", "a=foo", NULL);
	check("[{source_labels: [a, b], separator: '', regex: foobar, action: KEEP}]",
	      "a=foo b=bar", "a=foo b=bar");
	check("[{source_labels: [none], regex: '', action: drop}]", "a=1", NULL);
	check("[{source_labels: [a], regex: '', action: drop}]", "a=1", "a=1");
	check("[{source_labels: [a], target_label: b, action: keepequal}]", "a=1 b=1", "a=1 b=1");
	check("[{source_labels: [a], target_label: b, action: keepequal}]", "a=1 b=2", NULL);
	check("[{source_labels: [a], target_label: b, action: dropequal}]", "a=1 b=1", NULL);
	check("[{source_labels: [x], target_label: y, action: dropequal}]", "a=1", NULL);
}

static void hashmod_takes_the_last_half_of_the_digest(void **state)
{
	(void)state;
	check("[{source_labels: [c], target_label: d, action: hashmod, modulus: 1000}]",
	      "a=foo b=bar c=baz", "a=foo b=bar c=baz d=976");
	check("[{source_labels: [a], target_label: d, action: hashmod, modulus: 1000}]",
	      "a=foo\nbar", "a=foo\nbar d=734");
}

static void names_are_mapped_and_dropped_by_expression(void **state)
{
	(void)state;
	check("[{regex: '(b.*)', replacement: 'bar_${1}', action: labelmap}]",
	      "a=foo b1=bar b2=baz", "a=foo b1=bar b2=baz bar_b1=bar bar_b2=baz");
	check("[{regex: '__meta_(my.*)', replacement: '${1}', action: labelmap}]",
	      "a=foo __meta_my_bar=aaa __meta_my_baz=bbb __meta_other=ccc",
	      "a=foo __meta_my_bar=aaa __meta_my_baz=bbb __meta_other=ccc my_bar=aaa my_baz=bbb");
	check("[{regex: '(b.*)', action: labeldrop}]", "a=foo b1=bar b2=baz", "a=foo");
	check("[{regex: '(b.*)', action: labelkeep}]", "a=foo b1=bar b2=baz", "b1=bar b2=baz");
}

static void case_is_changed_beyond_ascii(void **state)
{
	struct strbuf out = { 0 };

	(void)state;
	check("[{source_labels: [foo], target_label: foo_lower, action: lowercase}, "
	      "{source_labels: [foo], target_label: foo_upper, action: uppercase}]",
	      "foo=bAr123Foo", "foo=bAr123Foo foo_lower=bar123foo foo_upper=BAR123FOO");
	letter_case_upper(&out, slice_of("straße äöü λόγος żółw да ÿ ǆ ẁ ⅳ ᲀ 𐐨"));
	assert_string_equal(strbuf_text(&out), "STRAßE ÄÖÜ ΛΌΓΟΣ ŻÓŁW ДА Ÿ Ǆ Ẁ Ⅳ В 𐐀");
	strbuf_clear(&out);
	letter_case_lower(&out, slice_of("ÄÖÜ ΛΌΓΟΣ ŻÓŁW ДА Ÿ İ ǅ Ω K 日本 \xff"));
	assert_string_equal(strbuf_text(&out), "äöü λόγοσ żółw да ÿ i ǆ ω k 日本 \xff");
	strbuf_free(&out);
}

static void who_drops_a_target_is_told(void **state)
{
	struct rule_labels set;
	struct relabel *relabel;
	struct strbuf text = { 0 };
	size_t rule = 99;

	(void)state;
	assert_int_equal(read_rules("- {target_label: x, replacement: y}\n"
				    "- source_labels: [a]\n"
				    "  regex: b\n"
				    "  action: drop\n",
				    &relabel, NULL),
			 0);
	fill(&set, "a=b");
	assert_false(relabel_apply(relabel, &set, &rule));
	assert_int_equal(rule, 1);
	assert_int_equal(relabel_rule_line(relabel, rule), 2);
	relabel_describe_rule(relabel, rule, &text);
	assert_string_equal(strbuf_text(&text), "drop source_labels [a] regex \"b\"");
	strbuf_free(&text);
	rule_labels_free(&set);
	relabel_free(relabel);
}

static void bad_rules_are_refused_with_their_line(void **state)
{
	static const struct {
		const char *yaml, *message;
	} cases[] = {
		{ "- action: keep\n- action: nonsense", "t.yml:2: unknown relabel action" },
		{ "- action: replace", "t.yml:1: relabel action replace requires a" },
		{ "- {action: hashmod, target_label: a}", "modulus" },
		{ "- {action: hashmod, target_label: a, modulus: -1}", "whole number" },
		{ "- {action: hashmod, modulus: 3}", "target_label" },
		{ "- {action: lowercase}", "target_label" },
		{ "- {action: keepequal, source_labels: [a]}", "target_label" },
		{ "- {action: dropequal, source_labels: [a], target_label: b, regex: x}", "only" },
		{ "- {action: labeldrop, regex: x, source_labels: [a]}", "only" },
		{ "- {action: labelkeep, regex: x, target_label: a}", "only" },
		{ "- {action: labelmap, replacement: '-'}", "replacement" },
		{ "- {action: uppercase, target_label: a, replacement: b}", "replacement" },
		{ "- {target_label: a-b}", "invalid \"target_label\"" },
		{ "- {target_label: '${a-b}'}", "invalid \"target_label\"" },
		{ "- {target_label: a, source_labels: [a.b]}", "not a valid label name" },
		{ "- target_label: a\n  regex: '('", "t.yml:2: regex \"(\"" },
		{ "- target_label: a\n  regexp: x", "t.yml:2: unknown key \"regexp\"" },
		{ "- target_label: a\n  target_label: b", "given twice" },
		{ "a: b", "expected a list" },
		{ "- a", "expected a map" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct relabel *relabel = NULL;
		struct err err = { 0 };

		assert_int_equal(read_rules(cases[i].yaml, &relabel, &err), -ERR_INVALID);
		if (!strstr(err.message, cases[i].message))
			fail_msg("\"%s\" of %s", err.message, cases[i].yaml);
		assert_null(relabel);
	}
}

static void md5_is_that_of_rfc_1321(void **state)
{
	static const struct {
		const char *text, *digest;
	} cases[] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "1234567890123456789012345678901234567890123456789012345678901234567890123456789"
		  "0",
		  "57edf4a22be3c955ac49da2e2107b67a" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t digest[MD5_BYTES];
		char text[2 * MD5_BYTES + 1];

		md5(cases[i].text, strlen(cases[i].text), digest);
		for (size_t j = 0; j < MD5_BYTES; j++)
			snprintf(text + 2 * j, 3, "%02x", digest[j]);
		assert_string_equal(text, cases[i].digest);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(replace_expands_groups),
		cmocka_unit_test(the_target_of_replace_may_have_groups),
		cmocka_unit_test(keep_and_drop_look_at_all_of_the_text),
		cmocka_unit_test(hashmod_takes_the_last_half_of_the_digest),
		cmocka_unit_test(names_are_mapped_and_dropped_by_expression),
		cmocka_unit_test(case_is_changed_beyond_ascii),
		cmocka_unit_test(who_drops_a_target_is_told),
		cmocka_unit_test(bad_rules_are_refused_with_their_line),
		cmocka_unit_test(md5_is_that_of_rfc_1321),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
