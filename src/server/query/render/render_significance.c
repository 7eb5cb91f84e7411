/* SPDX-License-Identifier: Apache-2.0 */
/* render_significance - what of a diff is more than noise, as JSON and for readers. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

#include "base/mem.h"
#include "base/printable.h"
#include "server/query/render/render.h"

#define SHOWN_MAX 20 /* changes that are told one by one */

const char *render_method_name(enum significance_method method)
{
	static const char *const names[] = { [SIGNIFICANCE_NONE] = "none",
					     [SIGNIFICANCE_COUNTS] = "counts",
					     [SIGNIFICANCE_BLOCKS] = "blocks" };

	return names[method];
}

static void put_number(struct json *json, const char *key, double value)
{
	json_put_key(json, key);
	json_put_double(json, value);
}

static void put_verdict(struct json *json, double low, double high, double p, bool significant)
{
	put_number(json, "low", low);
	put_number(json, "high", high);
	put_number(json, "p", p);
	json_member_bool(json, "significant", significant);
}

static void put_rate(struct json *json, const struct significance_mean *rate)
{
	json_put_key(json, "total");
	if (!rate->tested) {
		json_put_null(json);
		return;
	}
	json_open_object(json);
	put_number(json, "rate", rate->mean[SIGNIFICANCE_OTHER]);
	put_number(json, "base_rate", rate->mean[SIGNIFICANCE_BASE]);
	put_verdict(json, rate->low, rate->high, rate->p, rate->significant);
	json_close_object(json);
}

void render_significance_json(const struct comparison *comparison, struct json *json)
{
	const struct significance *of = &comparison->of;

	json_open_object(json);
	json_member_text(json, "method", render_method_name(of->method));
	if (of->method != SIGNIFICANCE_NONE) {
		json_member_uint(json, "blocks", of->blocks[SIGNIFICANCE_OTHER]);
		json_member_uint(json, "base_blocks", of->blocks[SIGNIFICANCE_BASE]);
		json_member_uint(
			json, "block_ms",
			(uint64_t)(comparison->block_ns[SIGNIFICANCE_OTHER] / CLOCK_NS_PER_MS));
		json_member_uint(
			json, "base_block_ms",
			(uint64_t)(comparison->block_ns[SIGNIFICANCE_BASE] / CLOCK_NS_PER_MS));
		json_member_uint(json, "series", of->series[SIGNIFICANCE_OTHER]);
		json_member_uint(json, "base_series", of->series[SIGNIFICANCE_BASE]);
		put_number(json, "level", SIGNIFICANCE_LEVEL);
		json_member_uint(json, "tests", of->tests);
		put_number(json, "dispersion", of->dispersion);
		put_number(json, "series_dispersion", of->series_dispersion);
		put_number(json, "freedom", of->freedom);
		put_rate(json, &comparison->rate);
	}
	json_close_object(json);
}

/* [low, high] of all values together; null where it cannot be told. */
static void put_bounds(struct json *json, const char *key, bool known, double low, double high)
{
	json_put_key(json, key);
	if (!known) {
		json_put_null(json);
		return;
	}
	json_open_array(json);
	json_put_double(json, low);
	json_put_double(json, high);
	json_close_array(json);
}

void render_intervals_json(const struct tree *tree, struct json *json)
{
	const struct comparison *intervals = tree->intervals;
	const struct significance *of = &intervals->of;
	const struct significance_mean *rate = &intervals->rate;
	double total = (double)tree->total + (double)tree->filtered;

	json_open_object(json);
	json_member_text(json, "method", render_method_name(of->method));
	if (of->method != SIGNIFICANCE_NONE) {
		json_member_uint(json, "blocks", of->blocks[SIGNIFICANCE_OTHER]);
		json_member_uint(
			json, "block_ms",
			(uint64_t)(intervals->block_ns[SIGNIFICANCE_OTHER] / CLOCK_NS_PER_MS));
		put_number(json, "dispersion", of->dispersion);
		put_number(json, "freedom", of->freedom);
		put_bounds(json, "total", rate->tested, total * (1 + rate->low),
			   total * (1 + rate->high));
	}
	json_close_object(json);
}

void render_interval_json(const struct comparison *intervals, uint32_t row, struct json *json)
{
	const struct significance_test *tests = &intervals->tests[(size_t)row * COMPARISON_WHATS];

	assert(row < intervals->functions.rows_count);
	if (intervals->of.method == SIGNIFICANCE_NONE)
		return;
	json_put_key(json, "interval");
	json_open_object(json);
	put_bounds(json, "self", true, tests[COMPARISON_SELF].low, tests[COMPARISON_SELF].high);
	put_bounds(json, "total", true, tests[COMPARISON_TOTAL].low, tests[COMPARISON_TOTAL].high);
	json_close_object(json);
}

static void put_change(struct json *json, const char *key, const struct significance_test *test)
{
	json_put_key(json, key);
	if (!test->tested) {
		json_put_null(json);
		return;
	}
	json_open_object(json);
	put_number(json, "share", test->share[SIGNIFICANCE_OTHER]);
	put_number(json, "base_share", test->share[SIGNIFICANCE_BASE]);
	put_verdict(json, test->low, test->high, test->p, test->significant);
	json_close_object(json);
}

void render_change_json(const struct comparison *comparison, uint32_t row, struct json *json)
{
	const struct significance_test *tests = &comparison->tests[(size_t)row * COMPARISON_WHATS];

	assert(row < comparison->functions.rows_count);
	if (!tests[COMPARISON_SELF].tested && !tests[COMPARISON_TOTAL].tested)
		return;
	json_put_key(json, "change");
	json_open_object(json);
	put_change(json, "self", &tests[COMPARISON_SELF]);
	put_change(json, "total", &tests[COMPARISON_TOTAL]);
	json_close_object(json);
}

/* A significant test of a function: the one with the larger change. */
struct shown {
	const struct functions_row *row;
	const struct significance_test *test;
	const char *what;
};

static double change_of(const struct significance_test *test)
{
	return test->share[SIGNIFICANCE_OTHER] - test->share[SIGNIFICANCE_BASE];
}

static int shown_order(const void *left, const void *right)
{
	const struct shown *a = left, *b = right;
	double x = fabs(change_of(a->test)), y = fabs(change_of(b->test));

	if (x != y)
		return x > y ? -1 : 1;
	return slice_compare(a->row->name, b->row->name);
}

static size_t find_shown(const struct comparison *comparison, struct shown *shown)
{
	size_t count = 0;

	for (uint32_t i = 0; i < comparison->functions.rows_count; i++) {
		const struct significance_test *self =
			&comparison->tests[(size_t)i * COMPARISON_WHATS + COMPARISON_SELF];
		const struct significance_test *total =
			&comparison->tests[(size_t)i * COMPARISON_WHATS + COMPARISON_TOTAL];
		bool by_self =
			self->significant &&
			(!total->significant || fabs(change_of(self)) >= fabs(change_of(total)));

		if (self->significant || total->significant)
			shown[count++] = (struct shown){ &comparison->functions.rows[i],
							 by_self ? self : total,
							 by_self ? "self" : "total" };
	}
	if (count)
		qsort(shown, count, sizeof(*shown), shown_order);
	return count;
}

static void say_method(const struct comparison *comparison, struct strbuf *out)
{
	const struct significance *of = &comparison->of;

	if (of->samples_per_value > 0 && of->method == SIGNIFICANCE_NONE)
		strbuf_add_text(out, "significance: not known: one side has no samples\n");
	else if (of->method == SIGNIFICANCE_NONE)
		strbuf_add_text(out, "significance: not known: values are no counted samples over "
				     "time\n");
	else if (of->method == SIGNIFICANCE_BLOCKS)
		strbuf_addf(out,
			    "significance: %zu against %zu blocks of time, %zu tests, at most %.0f "
			    "%% chance of any false alarm\n",
			    of->blocks[SIGNIFICANCE_OTHER], of->blocks[SIGNIFICANCE_BASE],
			    of->tests, 100 * SIGNIFICANCE_ALARMS_MAX);
	else
		strbuf_addf(out,
			    "significance: too few reports to see how much they vary; twice the "
			    "sampling error and some drift are assumed, %zu tests; record with "
			    "reports (-o x.firn) to know\n",
			    of->tests);
	if (of->series_dispersion > 0)
		strbuf_addf(out,
			    "processes or hosts: %zu against %zu series; what several of them have "
			    "is judged by how these differ, too\n",
			    of->series[SIGNIFICANCE_OTHER], of->series[SIGNIFICANCE_BASE]);
}

void render_significance_text(const struct comparison *comparison, struct strbuf *out)
{
	struct shown *shown =
		mem_new_array(struct shown, (size_t)comparison->functions.rows_count + 1);
	size_t count = find_shown(comparison, shown);
	const struct significance_mean *rate = &comparison->rate;

	say_method(comparison, out);
	if (rate->tested)
		strbuf_addf(
			out, "all, per second: %+.1f %% (%+.1f .. %+.1f %%)%s\n",
			100 * (rate->mean[SIGNIFICANCE_OTHER] / rate->mean[SIGNIFICANCE_BASE] - 1),
			100 * rate->low, 100 * rate->high,
			rate->significant ? "" : ", not significant");
	for (size_t i = 0; i < count && i < SHOWN_MAX; i++) {
		strbuf_addf(out, "  %+6.2f pt (%+.2f .. %+.2f), %.2f %% -> %.2f %%, p %.2g, %s  ",
			    100 * change_of(shown[i].test), 100 * shown[i].test->low,
			    100 * shown[i].test->high,
			    100 * shown[i].test->share[SIGNIFICANCE_BASE],
			    100 * shown[i].test->share[SIGNIFICANCE_OTHER], shown[i].test->p,
			    shown[i].what);
		printable_add(out, shown[i].row->name);
		strbuf_add_byte(out, '\n');
	}
	if (count > SHOWN_MAX)
		strbuf_addf(out, "  (%zu more)\n", count - SHOWN_MAX);
	if (!count && comparison->of.method != SIGNIFICANCE_NONE)
		strbuf_add_text(out, "  no function's share changed significantly\n");
	free(shown);
}

int render_verdict_text(const struct tree *tree, const struct rules *rules,
			const struct query_limits *limits, struct strbuf *out, struct err *err)
{
	struct strbuf report = { 0 };
	size_t breached;
	int rc = rules_judge(rules, tree, limits, &report, &breached, err);

	if (!rc && rules->count)
		strbuf_add_text(out, breached ? "breach\n" : "no breach\n");
	if (!rc)
		strbuf_add_slice(out, strbuf_slice(&report));
	if (!rc && tree->comparison)
		render_significance_text(tree->comparison, out);
	strbuf_free(&report);
	return rc;
}
