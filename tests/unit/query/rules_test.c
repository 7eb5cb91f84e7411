/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a diff: what breaches, what is said, what is refused. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/query/diff/compare.h"
#include "server/query/diff/rules.h"

#define SECOND CLOCK_NS_PER_S
#define REPORTS 12

/* Twelve reports of ten seconds before `base_end`, twelve after: "main;slow" grows. */
static void fill(struct world *world, int64_t slow_before, int64_t slow_after)
{
	struct tables *tables = &world->tables[0];
	uint32_t series = world_series(tables, WORLD_ON_CPU, 10101010, "comm=a");

	for (int i = 0; i < 2 * REPORTS; i++) {
		int64_t wobble = i % 3;

		world_report(tables, series, i * 10 * SECOND, 10 * SECOND);
		world_row(tables, "main;slow", "",
			  (i < REPORTS ? slow_before : slow_after) + wobble);
		world_row(tables, "main;other", "", 800 - wobble);
		world_row(tables, "main;third", "", 100 + 2 * wobble);
	}
}

static struct tree *diff_of(struct world *world, bool with_comparison)
{
	struct query_source source = world_source(world);
	struct query_params params = { .from_ns = REPORTS * 10 * SECOND,
				       .to_ns = 2 * REPORTS * 10 * SECOND };
	struct query_params base = { .from_ns = 0, .to_ns = REPORTS * 10 * SECOND };
	const struct compare_side sides[] = { { &source, &base }, { &source, &params } };
	struct selector selector;
	struct tree *tree;
	struct err err;

	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, &err), 0);
	params.selector = base.selector = &selector;
	assert_int_equal(query_diff(&source, &base, &source, &params, &tree, &err), 0);
	if (with_comparison)
		assert_int_equal(compare(tree, sides, COMPARE_REPORT_NS, &err), 0);
	selector_free(&selector);
	return tree;
}

static size_t judge(const struct tree *tree, const char *text, struct strbuf *report)
{
	struct rules rules;
	struct err err;
	size_t breached;

	if (rules_parse(slice_of(text), &rules, &err))
		fail_msg("%s", err.message);
	strbuf_clear(report);
	assert_int_equal(rules_judge(&rules, tree, NULL, report, &breached, NULL), 0);
	rules_free(&rules);
	return breached;
}

static void rules_breach_when_all_terms_hold(void **state)
{
	struct strbuf report = { 0 };
	struct world world;
	struct tree *tree;

	(void)state;
	world_init(&world, 1);
	fill(&world, 100, 150);
	tree = diff_of(&world, true);
	assert_int_equal(tree->comparison->of.method, SIGNIFICANCE_BLOCKS);
	assert_int_equal(tree->comparison->of.blocks[SIGNIFICANCE_BASE], REPORTS);
	assert_int_equal(judge(tree, "significant", &report), 1);
	assert_non_null(strstr(strbuf_text(&report), "slow +49."));
	assert_int_equal(judge(tree, "total>4%", &report), 1);
	assert_int_equal(judge(tree, "total>6%", &report), 0);
	assert_int_equal(judge(tree, "rate>4%", &report), 1);
	assert_int_equal(judge(tree, "total>4% significant", &report), 1);
	assert_int_equal(judge(tree, "total<4%", &report), 0);
	assert_int_equal(judge(tree, "func>40%", &report), 1);
	assert_int_equal(judge(tree, "func(\"^sl.w$\")>40%", &report), 1);
	assert_int_equal(judge(tree, "func(\"^third$\")>1%", &report), 0);
	assert_int_equal(judge(tree, "self(\"slow\")>4pt", &report), 1);
	assert_int_equal(judge(tree, "self(\"slow\")>5pt", &report), 0);
	assert_int_equal(judge(tree, "func(\"other\")<1pt significant", &report), 1);
	assert_int_equal(judge(tree, "func(\"other\")>0% significant", &report), 0);
	assert_int_equal(judge(tree, "total>90%, func>40% significant; total>4%", &report), 2);
	assert_int_equal(judge(tree, "func(\"a b\\\", |slow\")>40%", &report), 1);
	strbuf_free(&report);
	tree_free(tree);
	world_free(&world);
}

static void nothing_changed_breaches_nothing(void **state)
{
	struct strbuf report = { 0 };
	struct world world;
	struct tree *tree;

	(void)state;
	world_init(&world, 1);
	fill(&world, 100, 100);
	tree = diff_of(&world, true);
	assert_int_equal(judge(tree,
			       "significant, total>0%, func>0%, self>0%, total>0% significant",
			       &report),
			 0);
	assert_int_equal(report.len, 0);
	tree_free(tree);
	tree = diff_of(&world, false);
	assert_int_equal(judge(tree, "significant", &report), 0); /* not asked for: not known */
	strbuf_free(&report);
	tree_free(tree);
	world_free(&world);
}

static void refused(const char *text, const char *part)
{
	struct rules rules;
	struct err err;

	assert_int_equal(rules_parse(slice_of(text), &rules, &err) < 0, true);
	if (!strstr(err.message, part))
		fail_msg("\"%s\" does not say \"%s\"", err.message, part);
	rules_free(&rules);
}

static void wrong_rules_are_refused_with_what_is_expected(void **state)
{
	(void)state;
	refused("", "no rule");
	refused(" , ", "no rule");
	refused("sometimes", "\"sometimes\": expected significant");
	refused("total>5", "\"total>5\"");
	refused("total>x%", "\"total>x%\"");
	refused("total>-5%", "\"total>-5%\"");
	refused("total>2pt", "\"total>2pt\"");
	refused("func(re)>5%", "func(re)");
	refused("func(\"(\")>5%", "missing )");
	refused("func(\"a>5%", "func(\"a>5%");
	refused("total>nan%", "total>nan%");
	refused("total>1% total>1% total>1% total>1% total>1% total>1% total>1% total>1% total>1%",
		"more than 8 terms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_breach_when_all_terms_hold),
		cmocka_unit_test(nothing_changed_breaches_nothing),
		cmocka_unit_test(wrong_rules_are_refused_with_what_is_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
