/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/diff/rules.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/printable.h"
#include "base/regex.h"
#include "server/query/diff/compare.h"
#include "server/query/query.h"

#define NAMED_MAX 3 /* functions that a line names */
#define STEPS_PER_CHECK (1u << 20)
#define EXPECTED                                                                                   \
	"expected significant, total>5%%, rate>5%%, func>10%%, func(\"re\")>10%%, "                \
	"self(\"re\")>2pt"

/* Up to a blank (or the end) that is not within quotes. */
static struct slice cut_unquoted(struct slice text, const char *separators, struct slice *rest)
{
	bool quoted = false;
	size_t at = 0;

	for (; at < text.len; at++) {
		if (text.data[at] == '\\' && quoted && at + 1 < text.len)
			at++;
		else if (text.data[at] == '"')
			quoted = !quoted;
		else if (!quoted && text.data[at] && strchr(separators, text.data[at]))
			break;
	}
	*rest = slice_tail(text, at < text.len ? at + 1 : text.len);
	return (struct slice){ text.data, at };
}

static bool take(struct slice *text, const char *word)
{
	size_t len = strlen(word);

	if (text->len < len || memcmp(text->data, word, len) != 0)
		return false;
	*text = slice_tail(*text, len);
	return true;
}

static int wrong(struct slice term, struct err *err)
{
	return err_set(err, ERR_INVALID, "rule \"%.*s\": " EXPECTED, SLICE_FMT(term));
}

/* ("re") behind func or self; `\"` within is a quote. */
static int parse_regex(struct slice term, struct slice *rest, struct rules_term *into,
		       struct err *err)
{
	struct strbuf pattern = { 0 };
	char why[200];
	size_t at = 0;

	for (; at < rest->len && rest->data[at] != '"'; at++) {
		if (rest->data[at] == '\\' && at + 1 < rest->len && rest->data[at + 1] == '"')
			at++;
		strbuf_add_byte(&pattern, rest->data[at]);
	}
	*rest = slice_tail(*rest, at);
	if (!take(rest, "\")")) {
		strbuf_free(&pattern);
		return wrong(term, err);
	}
	into->regex = regex_new(strbuf_text(&pattern), pattern.len, false, why, sizeof(why));
	strbuf_free(&pattern);
	if (!into->regex)
		return err_set(err, ERR_INVALID, "rule \"%.*s\": %s", SLICE_FMT(term), why);
	return 0;
}

static int parse_limit(struct slice term, struct slice rest, struct rules_term *into,
		       struct err *err)
{
	char number[32], *end;

	if (!take(&rest, ">")) {
		if (!take(&rest, "<"))
			return wrong(term, err);
		into->shrinks = true;
	}
	if (!rest.len || rest.len >= sizeof(number))
		return wrong(term, err);
	memcpy(number, rest.data, rest.len);
	number[rest.len] = 0;
	into->limit = strtod(number, &end) / 100;
	into->points = !strcmp(end, "pt");
	if (end == number || (!into->points && strcmp(end, "%") != 0) ||
	    !(into->limit >= 0 && into->limit < 1e9))
		return wrong(term, err);
	return 0;
}

static int parse_term(struct slice term, struct rules_term *into, struct err *err)
{
	struct slice rest = term;
	bool of_function;
	int rc = 0;

	if (slice_is(term, "significant")) {
		into->kind = RULES_SIGNIFICANT;
		return 0;
	}
	if (take(&rest, "total"))
		into->kind = RULES_TOTAL;
	else if (take(&rest, "rate"))
		into->kind = RULES_RATE;
	else if (take(&rest, "func"))
		into->kind = RULES_FUNC;
	else if (take(&rest, "self"))
		into->kind = RULES_SELF;
	else
		return wrong(term, err);
	of_function = into->kind == RULES_FUNC || into->kind == RULES_SELF;
	if (of_function && take(&rest, "(\""))
		rc = parse_regex(term, &rest, into, err);
	if (!rc)
		rc = parse_limit(term, rest, into, err);
	if (!rc && into->points && !of_function)
		rc = wrong(term, err);
	return rc;
}

static int parse_rule(struct slice text, struct rules_rule *rule, struct err *err)
{
	struct slice rest = text;
	int rc = 0;

	assert(rule->terms_count <= RULES_TERMS_MAX);
	rule->text = text;
	while (!rc && rest.len) {
		struct slice word = cut_unquoted(rest, " \t\n", &rest);
		struct rules_term *term = &rule->terms[rule->terms_count];

		if (!word.len)
			continue;
		if (rule->terms_count == RULES_TERMS_MAX)
			return err_set(err, ERR_LIMIT, "rule \"%.*s\": more than %d terms",
				       SLICE_FMT(text), RULES_TERMS_MAX);
		rule->terms_count++;
		rc = parse_term(word, term, err);
		rule->significant |= term->kind == RULES_SIGNIFICANT;
		rule->of_functions |= term->kind == RULES_FUNC || term->kind == RULES_SELF;
		rule->of_all |= term->kind == RULES_TOTAL || term->kind == RULES_RATE;
	}
	return rc;
}

int rules_parse(struct slice text, struct rules *ret, struct err *err)
{
	struct slice rest = text;
	int rc = 0;

	*ret = (struct rules){ 0 };
	while (!rc && rest.len) {
		struct slice one = slice_trim(cut_unquoted(rest, ",;", &rest));

		if (!one.len)
			continue;
		if (ret->count == RULES_MAX)
			return err_set(err, ERR_LIMIT, "more than %d rules", RULES_MAX);
		rc = parse_rule(one, &ret->list[ret->count++], err);
	}
	if (!rc && !ret->count)
		rc = err_set(err, ERR_INVALID, "no rule given: " EXPECTED);
	return rc;
}

void rules_free(struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		for (size_t at = 0; at < rules->list[i].terms_count; at++)
			regex_free(rules->list[i].terms[at].regex);
	*rules = (struct rules){ 0 };
}

bool rules_need_comparison(const struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->list[i].significant)
			return true;
	return false;
}

/* What rules are judged by. */
struct judging {
	const struct tree *tree;
	const struct functions *functions;
	double total, base_total;	   /* of everything, shown or filtered */
	const struct query_limits *limits; /* may be NULL */
	uint32_t steps; /* of regular expressions since the limits were looked at */
	int rc;
	struct err *err;
};

static double growth(double value, double base)
{
	if (base == 0)
		return value == 0 ? 0 : (double)INFINITY;
	return value / base - 1;
}

static bool beyond(const struct rules_term *term, double change)
{
	return term->shrinks ? change < -term->limit : change > term->limit;
}

static double change_of_all(const struct judging *judging, enum rules_term_kind kind)
{
	const struct tree *tree = judging->tree;

	if (kind == RULES_RATE && tree->duration_ns > 0 && tree->base_duration_ns > 0)
		return growth(judging->total / (double)tree->duration_ns,
			      judging->base_total / (double)tree->base_duration_ns);
	return growth(judging->total, judging->base_total);
}

static double change_of_row(const struct judging *judging, const struct functions_row *row,
			    const struct rules_term *term)
{
	bool self = term->kind == RULES_SELF;
	double value = (double)(self ? row->value.flat : row->value.cum);
	double base = (double)(self ? row->base.flat : row->base.cum);

	if (!term->points)
		return growth(value, base);
	return (judging->total > 0 ? value / judging->total : 0) -
	       (judging->base_total > 0 ? base / judging->base_total : 0);
}

static bool grew(const struct significance_test *test)
{
	return test->significant &&
	       test->share[SIGNIFICANCE_OTHER] > test->share[SIGNIFICANCE_BASE];
}

static bool shrank(const struct significance_test *test)
{
	return test->significant &&
	       test->share[SIGNIFICANCE_OTHER] < test->share[SIGNIFICANCE_BASE];
}

/* In the direction that the rule's terms about this measure have; without any: an increase. */
static bool is_significant(const struct rules_rule *rule, const struct significance_test *tests)
{
	bool met = false;

	for (size_t i = 0; i < rule->terms_count; i++) {
		const struct rules_term *term = &rule->terms[i];

		if (term->kind == RULES_FUNC || term->kind == RULES_SELF) {
			const struct significance_test *test =
				&tests[term->kind == RULES_SELF ? COMPARISON_SELF
								: COMPARISON_TOTAL];

			if (!(term->shrinks ? shrank(test) : grew(test)))
				return false;
			met = true;
		}
	}
	return met || grew(&tests[COMPARISON_SELF]) || grew(&tests[COMPARISON_TOTAL]);
}

static bool names_row(struct judging *judging, const struct rules_term *term, struct slice name)
{
	uint32_t steps = regex_steps(term->regex, name.len);

	if (__builtin_add_overflow(judging->steps, steps, &judging->steps) ||
	    judging->steps > STEPS_PER_CHECK) {
		judging->steps = 0;
		if (!judging->rc && judging->limits)
			judging->rc = query_limits_check(judging->limits, judging->err);
	}
	return !judging->rc && regex_matches_part(term->regex, name.data, name.len);
}

static bool row_breaches(struct judging *judging, const struct rules_rule *rule, uint32_t at)
{
	const struct functions_row *row = &judging->functions->rows[at];
	const struct comparison *comparison = judging->tree->comparison;

	assert(at < judging->functions->rows_count);
	for (size_t i = 0; i < rule->terms_count; i++) {
		const struct rules_term *term = &rule->terms[i];

		if (term->kind != RULES_FUNC && term->kind != RULES_SELF)
			continue;
		if (!beyond(term, change_of_row(judging, row, term)))
			return false;
		if (term->regex && !names_row(judging, term, row->name))
			return false;
	}
	if (!rule->significant)
		return true;
	return comparison &&
	       is_significant(rule, &comparison->tests[(size_t)at * COMPARISON_WHATS]);
}

static bool all_breaches(const struct judging *judging, const struct rules_rule *rule)
{
	const struct comparison *comparison = judging->tree->comparison;
	bool shrinks = false;

	for (size_t i = 0; i < rule->terms_count; i++) {
		const struct rules_term *term = &rule->terms[i];

		if (term->kind != RULES_TOTAL && term->kind != RULES_RATE)
			continue;
		if (!beyond(term, change_of_all(judging, term->kind)))
			return false;
		shrinks |= term->shrinks;
	}
	if (!rule->significant || rule->of_functions || !rule->of_all)
		return true;
	return comparison && comparison->rate.significant && shrinks == (comparison->rate.high < 0);
}

static void say_percent(struct strbuf *out, double change)
{
	if (isinf(change))
		strbuf_add_text(out, " is new");
	else
		strbuf_addf(out, " %+.2f%%", 100 * change);
}

/* The functions of the rule, those with most first; false when there are none. */
static bool say_rows(struct judging *judging, const struct rules_rule *rule, struct strbuf *report)
{
	const struct functions *functions = judging->functions;
	uint32_t named[NAMED_MAX], count = 0, shown;

	for (uint32_t i = 0; i < functions->rows_count && !judging->rc; i++) {
		uint32_t at = count < NAMED_MAX ? count : NAMED_MAX - 1;
		int64_t cum = functions->rows[i].value.cum;

		if (!row_breaches(judging, rule, i))
			continue;
		if (count++ < NAMED_MAX)
			named[at] = i;
		else if (functions->rows[named[at]].value.cum < cum)
			named[at] = i;
		for (; at && functions->rows[named[at - 1]].value.cum < cum; at--) {
			named[at] = named[at - 1];
			named[at - 1] = i;
		}
	}
	shown = count < NAMED_MAX ? count : NAMED_MAX;
	for (uint32_t i = 0; i < shown; i++) {
		const struct functions_row *row = &functions->rows[named[i]];

		strbuf_add_text(report, i ? ", " : "");
		printable_add(report, row->name);
		say_percent(report, growth((double)row->value.cum, (double)row->base.cum));
	}
	if (count > shown)
		strbuf_addf(report, ", and %u more", count - shown);
	return count > 0;
}

static bool judge_rule(struct judging *judging, const struct rules_rule *rule,
		       struct strbuf *report)
{
	struct strbuf rows = { 0 };
	bool of_rows = rule->of_functions || !rule->of_all;
	bool breached = all_breaches(judging, rule);

	assert(rule->terms_count <= RULES_TERMS_MAX);
	if (breached && of_rows)
		breached = say_rows(judging, rule, &rows);
	if (breached) {
		printable_add(report, rule->text);
		strbuf_add_text(report, ": ");
		if (rule->of_all) {
			strbuf_add_text(report, "total");
			say_percent(report, change_of_all(judging, RULES_TOTAL));
			strbuf_add_text(report, ", per second");
			say_percent(report, change_of_all(judging, RULES_RATE));
			strbuf_add_text(report, of_rows ? "; " : "");
		}
		strbuf_add_slice(report, strbuf_slice(&rows));
		strbuf_add_byte(report, '\n');
	}
	strbuf_free(&rows);
	return breached;
}

int rules_judge(const struct rules *rules, const struct tree *tree,
		const struct query_limits *limits, struct strbuf *report, size_t *ret,
		struct err *err)
{
	struct functions functions;
	struct judging judging = { .tree = tree,
				   .functions = &functions,
				   .total = (double)tree->total + (double)tree->filtered,
				   .base_total =
					   (double)tree->base_total + (double)tree->base_filtered,
				   .limits = limits,
				   .err = err };
	size_t breached = 0;

	assert(rules->count <= RULES_MAX);
	assert(tree->nodes_count > 0);
	functions_make(&functions, tree);
	for (size_t i = 0; i < rules->count && !judging.rc; i++)
		breached += judge_rule(&judging, &rules->list[i], report);
	functions_free(&functions);
	if (!judging.rc)
		*ret = breached;
	return judging.rc;
}
