/* SPDX-License-Identifier: Apache-2.0 */
/* What is more than noise: the distributions, the tests of shares, their correction. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "server/query/diff/series_noise.h"
#include "server/query/significance/significance.h"
#include "server/query/significance/student.h"

#define FUNCTIONS 40
#define BLOCKS 12
#define BLOCK_SAMPLES 2000

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-6 * fabs(want))
		fail_msg("got %.9g, want %.9g", got, want);
}

/* Tails by numerical integration of the density; the rest from tables (Abramowitz and Stegun). */
static void student_agrees_with_tables(void **state)
{
	(void)state;
	near(student_two_sided(2, 10), 0.07338803477074037);
	near(student_two_sided(-2, 10), 0.07338803477074037);
	near(student_two_sided(6, 22), 4.873273454e-06);
	near(student_two_sided(1.5, 1), 0.3743340836219976);
	near(student_two_sided(1.959963984540054, 1e9), 0.05);
	near(student_bound(0.05, 10), 2.2281388519649385);
	near(student_bound(0.05, 1e9), 1.959963984540054);
	near(student_digamma(1), -0.5772156649015329);
	near(student_digamma(5), 1.5061176684318003);
	near(student_trigamma(1), 1.6449340668482264);
	near(student_trigamma(0.5), 4.934802200544679);
	near(student_trigamma_inverse(student_trigamma(7.5)), 7.5);
}

/* A small generator, so that each run is the same. */
static uint64_t seed;
static double uniform(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) / 9007199254740992.0;
}

/* Normal enough: the sum of twelve. */
static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum;
}

/* Function i has a share that falls with i; `noise` is the first one's dispersion. */
static void add_side(struct significance *of, struct significance_test *tests,
		     enum significance_side side, double noise, double growth)
{
	for (int block = 0; block < BLOCKS; block++) {
		double values[FUNCTIONS], total = 0;

		for (int i = 0; i < FUNCTIONS; i++) {
			double mean = BLOCK_SAMPLES * 0.2 * pow(0.8, i);

			/* phases: the more a function has, the more it varies beyond sampling */
			double dispersion = noise < 1 ? noise : 1 + (noise - 1) * pow(0.8, i);

			values[i] = fmax(0, round(mean + normal() * sqrt(dispersion * mean)));
			if (i == 0)
				values[i] = round(values[i] * (1 + growth));
			total += values[i];
		}
		for (int i = 0; i < FUNCTIONS; i++) {
			tests[i].value[side] += values[i];
			tests[i].spread[side] += values[i] * values[i] / total;
		}
		of->total[side] += total;
		of->blocks[side]++;
	}
}

/* How many of 400 comparisons find anything; in *ret_first those that find function 0. */
static int alarms(double noise, double growth, int *ret_first)
{
	int any = 0;

	*ret_first = 0;
	seed = 1;
	for (int round_ = 0; round_ < 400; round_++) {
		struct significance_test tests[FUNCTIONS] = { 0 };
		struct significance of = { .samples_per_value = 1 };
		int found = 0;

		add_side(&of, tests, SIGNIFICANCE_BASE, noise, 0);
		add_side(&of, tests, SIGNIFICANCE_OTHER, noise, growth);
		significance_judge(&of, tests, FUNCTIONS);
		for (int i = 0; i < FUNCTIONS; i++)
			found += tests[i].significant;
		any += found > 0;
		*ret_first += tests[0].significant;
	}
	return any;
}

/* How many intervals of 400 samples hold the share that the program really gives, in percent. */
static double coverage(double noise)
{
	double sum = 0;
	int held = 0, all = 0;

	for (int i = 0; i < FUNCTIONS; i++)
		sum += pow(0.8, i);
	seed = 5;
	for (int round_ = 0; round_ < 400; round_++) {
		struct significance_test tests[FUNCTIONS] = { 0 };
		struct significance of = { .samples_per_value = 1 };

		add_side(&of, tests, SIGNIFICANCE_OTHER, noise, 0);
		significance_intervals(&of, tests, FUNCTIONS);
		assert_int_equal(of.method, SIGNIFICANCE_BLOCKS);
		for (int i = 0; i < FUNCTIONS; i++) {
			double truth = of.total[SIGNIFICANCE_OTHER] * pow(0.8, i) / sum;

			held += tests[i].low <= truth && truth <= tests[i].high;
			all++;
			assert_true(tests[i].low <= tests[i].value[SIGNIFICANCE_OTHER]);
			assert_true(tests[i].high >= tests[i].value[SIGNIFICANCE_OTHER]);
		}
	}
	return 100.0 * held / all;
}

static void intervals_hold_what_another_sample_would_give(void **state)
{
	static const double noises[] = { 1, 2, 6 };

	(void)state;
	for (size_t i = 0; i < sizeof(noises) / sizeof(noises[0]); i++) {
		double held = coverage(noises[i]);

		if (!(held >= 94 && held <= 98.5))
			fail_msg("noise %g: %.2f %% of the intervals hold", noises[i], held);
	}
}

static void intervals_of_few_samples_stay_within_all(void **state)
{
	struct significance_test tests[3] = { 0 };
	struct significance of = { .samples_per_value = 1 };

	(void)state;
	tests[1].value[SIGNIFICANCE_OTHER] = 3;
	tests[2].value[SIGNIFICANCE_OTHER] = 10;
	of.total[SIGNIFICANCE_OTHER] = 10;
	of.blocks[SIGNIFICANCE_OTHER] = 1;
	significance_intervals(&of, tests, 3);
	assert_int_equal(of.method, SIGNIFICANCE_COUNTS);
	assert_true(tests[0].low == 0 && tests[0].high > 1 && tests[0].high < 10);
	assert_true(tests[1].low > 0 && tests[1].low < 3 && tests[1].high > 3);
	assert_true(tests[2].high == 10 && tests[2].low < 9);
	of.samples_per_value = 0; /* bytes */
	significance_intervals(&of, tests, 3);
	assert_int_equal(of.method, SIGNIFICANCE_NONE);
}

static void equal_programs_raise_alarms_seldom(void **state)
{
	int first;

	(void)state;
	assert_true(alarms(1, 0, &first) <= 400 * 5 / 100);
	assert_true(alarms(6, 0, &first) <= 400 * 5 / 100); /* six times the variance of sampling */
	assert_true(alarms(0.1, 0, &first) <= 400 * 5 / 100);
}

static void a_grown_function_is_found(void **state)
{
	int first;

	(void)state;
	alarms(1, 0.2, &first);
	assert_true(first >= 400 * 99 / 100);
	alarms(1, 0.01, &first);
	assert_true(first <= 400 * 20 / 100); /* too little to be seen */
}

static void intervals_hold_the_difference_and_p_is_adjusted(void **state)
{
	struct significance of = { .total = { 1000, 1000 }, .samples_per_value = 1 };
	struct significance_test tests[3] = { { .value = { 100, 260 } },
					      { .value = { 100, 260 } },
					      { .value = { 300, 310 } } };
	/* dispersion 4, drift 0.05 */
	const double error = sqrt(4 * 0.18 * 0.82 * 2 / 1000 + 2 * 0.0025 * 0.18 * 0.18);

	(void)state;
	significance_judge(&of, tests, 3);
	assert_int_equal(of.method, SIGNIFICANCE_COUNTS);
	assert_int_equal(of.tests, 2); /* the first two are one */
	near(tests[0].share[SIGNIFICANCE_OTHER], 0.26);
	near(tests[0].low, 0.16 - 1.959963984540054 * error);
	near(tests[0].high, 0.16 + 1.959963984540054 * error);
	/* the level is dealt out by the shares, 0.18 and 0.305 */
	near(tests[0].p, (1 + pow(0.305 / 0.18, 1.5)) * student_two_sided(0.16 / error, 1e9));
	near(tests[1].p, tests[0].p);
	assert_true(tests[0].significant);
	assert_false(tests[2].significant);
}

static void what_cannot_tell_is_not_tested(void **state)
{
	struct significance of = { .total = { 1000, 1000 }, .samples_per_value = 1 };
	struct significance_test tests[3] = {
		{ .value = { 5, 6 } },	     /* too few samples */
		{ .value = { 1000, 1000 } }, /* everything: main */
		{ .value = { 0, 30 } },
	};

	(void)state;
	significance_judge(&of, tests, 3);
	assert_false(tests[0].tested);
	assert_false(tests[1].tested);
	assert_true(tests[2].tested);
	of.samples_per_value = 0; /* bytes */
	significance_judge(&of, tests, 3);
	assert_int_equal(of.method, SIGNIFICANCE_NONE);
	of = (struct significance){ .samples_per_value = 1 }; /* nothing at all */
	significance_judge(&of, tests, 3);
	assert_int_equal(of.method, SIGNIFICANCE_NONE);
	assert_int_equal(of.tests, 0);
}

/* Welch's test: t = 2.0868, 4.4218 degrees of freedom. */
static void means_are_compared_as_welch_does(void **state)
{
	static const double base[] = { 10, 9, 10, 11, 10 }, other[] = { 11, 12, 10, 13 };
	struct significance_mean mean = { .values = { base, other }, .count = { 5, 4 } };

	(void)state;
	significance_compare_means(&mean);
	assert_true(mean.tested);
	near(mean.mean[SIGNIFICANCE_BASE], 10);
	near(mean.mean[SIGNIFICANCE_OTHER], 11.5);
	near(mean.p, 0.09856755964695453);
	assert_false(mean.significant);
	assert_true(mean.low < 0.15 && mean.high > 0.15);
	mean.count[SIGNIFICANCE_BASE] = 3;
	significance_compare_means(&mean);
	assert_false(mean.tested);
}

static void totals_without_blocks_are_compared_by_their_samples(void **state)
{
	struct significance_mean mean = { 0 };

	(void)state;
	significance_compare_counts(&mean, (double[]){ 1000, 1500 }, (double[]){ 10, 15 });
	assert_true(mean.tested);
	assert_false(mean.significant);
	near(mean.mean[SIGNIFICANCE_OTHER], 100);
	significance_compare_counts(&mean, (double[]){ 1000, 1500 }, (double[]){ 10, 10 });
	assert_true(mean.significant);
	assert_true(mean.low > 0);
}

#define POINTS 30

/* Steps of two and three reports in turn, a load that grows by a half over the range. */
static double series_coverage(double dispersion, double *ret_dispersion)
{
	struct query_point points[POINTS] = { 0 };
	const struct query_series series = { .points = points, .points_count = POINTS };
	int held = 0, all = 0;

	seed = 7;
	*ret_dispersion = 0;
	for (int round_ = 0; round_ < 400; round_++) {
		struct series_noise noise;
		double truths[POINTS];

		for (int i = 0; i < POINTS; i++) {
			points[i].reports = (uint32_t)(2 + i % 2);
			truths[i] = 200.0 * points[i].reports * (1 + 0.5 * i / POINTS);
			points[i].value =
				llround(truths[i] + normal() * sqrt(dispersion * truths[i]));
			points[i].value *= 1000; /* nanoseconds; a sample is 1000 */
		}
		noise = series_noise_of(&series, 1e-3);
		assert_int_equal(noise.method, SIGNIFICANCE_BLOCKS);
		*ret_dispersion += noise.dispersion / 400;
		for (int i = 0; i < POINTS; i++, all++) {
			double low, high;

			series_noise_interval(&noise, points[i].value, &low, &high);
			held += low <= 1000 * truths[i] && 1000 * truths[i] <= high;
		}
	}
	return 100.0 * held / all;
}

static void points_hold_what_another_sample_would_give(void **state)
{
	static const double dispersions[] = { 1, 2, 6 };

	(void)state;
	for (size_t i = 0; i < sizeof(dispersions) / sizeof(dispersions[0]); i++) {
		double measured, held = series_coverage(dispersions[i], &measured);

		if (!(held >= 94 && held <= 98.5))
			fail_msg("dispersion %g: %.2f %% of the intervals hold", dispersions[i],
				 held);
		if (!(measured > 0.95 * dispersions[i] && measured < 1.25 * dispersions[i]))
			fail_msg("dispersion %g: %g is measured", dispersions[i], measured);
	}
}

static void few_points_are_assumed_to_vary(void **state)
{
	struct query_point points[3] = { { .value = 100, .reports = 1 },
					 { .value = 0, .reports = 1 },
					 { .value = 100, .reports = 1 } };
	const struct query_series series = { .points = points, .points_count = 3 };
	struct series_noise noise = series_noise_of(&series, 1);
	double low, high;

	(void)state;
	assert_int_equal(noise.method, SIGNIFICANCE_COUNTS);
	series_noise_interval(&noise, 100, &low, &high);
	assert_true(low > 60 && low < 70 && high > 145 && high < 155); /* twice sqrt(100), skewed */
	series_noise_interval(&noise, 0, &low, &high);
	assert_true(low == 0 && high > 10 && high < 20);
	assert_int_equal(series_noise_of(&series, 0).method, SIGNIFICANCE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student_agrees_with_tables),
		cmocka_unit_test(intervals_hold_what_another_sample_would_give),
		cmocka_unit_test(intervals_of_few_samples_stay_within_all),
		cmocka_unit_test(equal_programs_raise_alarms_seldom),
		cmocka_unit_test(a_grown_function_is_found),
		cmocka_unit_test(intervals_hold_the_difference_and_p_is_adjusted),
		cmocka_unit_test(what_cannot_tell_is_not_tested),
		cmocka_unit_test(means_are_compared_as_welch_does),
		cmocka_unit_test(totals_without_blocks_are_compared_by_their_samples),
		cmocka_unit_test(points_hold_what_another_sample_would_give),
		cmocka_unit_test(few_points_are_assumed_to_vary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
