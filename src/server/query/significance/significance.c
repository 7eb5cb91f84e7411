/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/significance/significance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/query/significance/student.h"

#define NEIGHBOURS 25	      /* on each side, of functions by their share */
#define DISPERSION_LEAST 0.05 /* a function that never varies: its logarithm has to exist */
#define WEIGHT_POWER 1.5      /* of a share, in dealing out the level */
#define FREEDOM_MAX 1e9	      /* dispersions that differ by no more than chance */

/* Between what values are compared to say how much they vary. */
enum spread { SPREAD_BLOCKS, SPREAD_SERIES, SPREADS };

#define UNKNOWN (-1.0) /* as a dispersion */

/* One test while it is judged. */
struct candidate {
	struct significance_test *test;
	double share;		    /* of both sides together */
	double dispersion[SPREADS]; /* its own */
	double typical[SPREADS];    /* the logarithm of that of functions of about its share */
	double p;
	double weight;	/* of the level, how much is this test's */
	size_t same_as; /* the first candidate with the same numbers */
};

struct judge {
	struct significance *of;
	struct candidate *candidates;
	size_t count;
	double total;
	double freedom_own[SPREADS]; /* of one function's dispersion; 0: there is none */
	double freedom_prior[SPREADS];
	double typical[SPREADS]; /* of all functions */
};

static bool measures_spread(const struct significance *of)
{
	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		if (of->total[side] > 0 && of->blocks[side] < SIGNIFICANCE_BLOCKS_MIN)
			return false;
	return true;
}

/* Series that only one side has are compared to each other: two means are estimated, not one. */
static double series_freedom(const struct significance *of)
{
	size_t distinct = of->series[0] + of->series[1] - of->series_both;
	size_t means = distinct > of->series_both ? 2 : 1;
	double freedom = (double)distinct - (double)means;

	if (!of->series[0] || !of->series[1] || freedom < SIGNIFICANCE_SERIES_FREEDOM_MIN ||
	    (means == 2 && (of->series[0] < 2 || of->series[1] < 2)))
		return 0;
	return freedom;
}

/* What a dispersion of 1 means for the variance of the difference of shares. */
static double sampling_variance(const struct judge *judge, double share)
{
	const struct significance *of = judge->of;

	return (1 / of->total[SIGNIFICANCE_BASE] + 1 / of->total[SIGNIFICANCE_OTHER]) /
	       of->samples_per_value * share * (1 - share);
}

static double series_dispersion(const struct judge *judge, const struct candidate *candidate)
{
	const struct significance_test *test = candidate->test;
	double freedom = judge->freedom_own[SPREAD_SERIES];
	double shares = test->share[SIGNIFICANCE_BASE] + test->share[SIGNIFICANCE_OTHER];
	double distinct = (double)(judge->of->series[0] + judge->of->series[1]) -
			  (double)judge->of->series_both;

	if (!(freedom > 0) ||
	    !(shares * shares >= SIGNIFICANCE_SERIES_EVEN_MIN * test->series_weights))
		return UNKNOWN;
	return test->series_squares * distinct / freedom /
	       sampling_variance(judge, candidate->share);
}

static double own_dispersion(const struct judge *judge, const struct candidate *candidate)
{
	const struct significance_test *test = candidate->test;
	double sum = 0;

	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		if (judge->of->total[side] > 0)
			sum += test->spread[side] -
			       test->value[side] * test->value[side] / judge->of->total[side];
	return fmax(sum, 0) * judge->of->samples_per_value /
	       (judge->freedom_own[SPREAD_BLOCKS] * candidate->share * (1 - candidate->share));
}

static void add_candidate(struct judge *judge, struct significance_test *test)
{
	double unit = judge->of->samples_per_value;
	double both = test->value[SIGNIFICANCE_BASE] + test->value[SIGNIFICANCE_OTHER];
	struct candidate *candidate = &judge->candidates[judge->count];

	assert(judge->candidates);
	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		if (judge->of->total[side] > 0)
			test->share[side] = test->value[side] / judge->of->total[side];
	if (both * unit < SIGNIFICANCE_SAMPLES_MIN ||
	    (judge->total - both) * unit < SIGNIFICANCE_SAMPLES_MIN)
		return;
	*candidate = (struct candidate){ .test = test,
					 .share = both / judge->total,
					 .weight = pow(both / judge->total, WEIGHT_POWER),
					 .dispersion = { UNKNOWN, UNKNOWN } };
	if (judge->freedom_own[SPREAD_BLOCKS] > 0)
		candidate->dispersion[SPREAD_BLOCKS] = own_dispersion(judge, candidate);
	candidate->dispersion[SPREAD_SERIES] = series_dispersion(judge, candidate);
	test->tested = true;
	judge->count++;
}

/* By their numbers, so that equal ones are neighbours. */
static int number_order(const void *left, const void *right)
{
	const struct significance_test *a = ((const struct candidate *)left)->test;
	const struct significance_test *b = ((const struct candidate *)right)->test;

	for (int side = 0; side < SIGNIFICANCE_SIDES; side++) {
		if (a->value[side] != b->value[side])
			return a->value[side] < b->value[side] ? -1 : 1;
		if (a->spread[side] != b->spread[side])
			return a->spread[side] < b->spread[side] ? -1 : 1;
	}
	return 0;
}

/* Sorts, and counts the distinct ones. */
static void find_equals(struct judge *judge)
{
	if (judge->count)
		qsort(judge->candidates, judge->count, sizeof(*judge->candidates), number_order);
	for (size_t i = 0; i < judge->count; i++) {
		bool same = i && !number_order(&judge->candidates[i - 1], &judge->candidates[i]);

		judge->candidates[i].same_as = same ? judge->candidates[i - 1].same_as : i;
		judge->of->tests += !same;
	}
}

static double log_dispersion(const struct judge *judge, enum spread spread,
			     const struct candidate *candidate)
{
	double half = judge->freedom_own[spread] / 2;

	return log(fmax(candidate->dispersion[spread], DISPERSION_LEAST)) + log(half) -
	       student_digamma(half);
}

static int share_order(const void *left, const void *right)
{
	const struct candidate *const *a = left, *const *b = right;

	return ((*a)->share > (*b)->share) - ((*a)->share < (*b)->share);
}

/*
 * What is typical for functions of about the same share: the more samples, the more of the spread
 * is phases of the program. Means of neighbours by share.
 */
static void find_trend(struct judge *judge, enum spread spread, struct candidate **by_share,
		       size_t count)
{
	double *sums = mem_new_array(double, count + 1);

	qsort(by_share, count, sizeof(struct candidate *), share_order);
	for (size_t i = 0; i < count; i++)
		sums[i + 1] = sums[i] + log_dispersion(judge, spread, by_share[i]);
	for (size_t i = 0; i < count; i++) {
		size_t from = i > NEIGHBOURS ? i - NEIGHBOURS : 0;
		size_t to = i + NEIGHBOURS + 1 < count ? i + NEIGHBOURS + 1 : count;

		by_share[i]->typical[spread] = (sums[to] - sums[from]) / (double)(to - from);
	}
	judge->typical[spread] = count ? exp(sums[count] / (double)count) : 1;
	free(sums);
}

/*
 * How firmly dispersions are known before a function's own is looked at: by how much their
 * logarithms vary beyond what so few blocks explain.
 */
static void find_typical(struct judge *judge, enum spread spread)
{
	struct candidate **distinct = mem_new_array(struct candidate *, judge->count + 1);
	double half = judge->freedom_own[spread] / 2, squares = 0, beyond;
	size_t count = 0;

	assert(spread < SPREADS);
	for (size_t i = 0; i < judge->count; i++)
		if (judge->candidates[i].same_as == i &&
		    judge->candidates[i].dispersion[spread] >= 0)
			distinct[count++] = &judge->candidates[i];
	find_trend(judge, spread, distinct, count);
	for (size_t i = 0; i < count; i++) {
		double e =
			log_dispersion(judge, spread, distinct[i]) - distinct[i]->typical[spread];

		squares += e * e;
	}
	judge->freedom_prior[spread] = 0;
	if (count > 1) {
		beyond = squares / (double)(count - 1) - student_trigamma(half);
		judge->freedom_prior[spread] =
			beyond > 0 ? 2 * student_trigamma_inverse(beyond) : FREEDOM_MAX;
	}
	for (size_t i = 0; i < judge->count; i++)
		judge->candidates[i].typical[spread] =
			judge->candidates[judge->candidates[i].same_as].typical[spread];
	free(distinct);
}

static double moderated(const struct judge *judge, enum spread spread,
			const struct candidate *candidate)
{
	double half = judge->freedom_prior[spread] / 2, own = candidate->dispersion[spread];
	double together = judge->freedom_prior[spread] + judge->freedom_own[spread], typical;

	assert(spread < SPREADS);
	if (!(half > 0))
		return fmax(1, own);
	typical = exp(candidate->typical[spread] + student_digamma(half) - log(half));
	typical = (judge->freedom_prior[spread] * typical + judge->freedom_own[spread] * own) /
		  together;
	return fmax(1, fmax(own, typical));
}

/* The larger one of its dispersions, and how firmly that is known. */
static double counting_dispersion(const struct judge *judge, const struct candidate *candidate,
				  double *ret_freedom)
{
	double largest = 0;

	*ret_freedom = FREEDOM_MAX;
	for (int i = 0; i < SPREADS; i++) {
		enum spread spread = (enum spread)i;
		double dispersion;

		if (candidate->dispersion[i] < 0)
			continue;
		dispersion = moderated(judge, spread, candidate);
		if (dispersion <= largest)
			continue;
		largest = dispersion;
		*ret_freedom = judge->freedom_own[i] + judge->freedom_prior[i];
	}
	return largest;
}

static void test_difference(const struct judge *judge, struct candidate *candidate)
{
	struct significance_test *test = candidate->test;
	double difference = test->share[SIGNIFICANCE_OTHER] - test->share[SIGNIFICANCE_BASE];
	double freedom, drift = 0, error, bound;
	double dispersion = counting_dispersion(judge, candidate, &freedom);

	if (!(dispersion > 0)) {
		dispersion = SIGNIFICANCE_DISPERSION_ASSUMED;
		drift = SIGNIFICANCE_DRIFT_ASSUMED * candidate->share;
	}
	error = sqrt(dispersion * sampling_variance(judge, candidate->share) + 2 * drift * drift);
	bound = student_bound(SIGNIFICANCE_OUTSIDE, freedom) * error;
	candidate->p = student_two_sided(difference / error, freedom);
	test->low = difference - bound;
	test->high = difference + bound;
}

static int p_order(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;
	double x = a->p / a->weight, y = b->p / b->weight;

	return (x > y) - (x < y);
}

/*
 * Holm's step-down with weights. Equal tests have equal p and stand side by side: the first one
 * counts.
 */
static void adjust(struct judge *judge)
{
	double least = 0, left = 0;

	for (size_t i = 0; i < judge->count; i++)
		if (judge->candidates[i].same_as != SIZE_MAX)
			left += judge->candidates[i].weight;
	qsort(judge->candidates, judge->count, sizeof(*judge->candidates), p_order);
	for (size_t i = 0; i < judge->count; i++) {
		struct candidate *candidate = &judge->candidates[i];
		double share = fmax(1, left / candidate->weight);

		least = fmin(1, fmax(least, candidate->p * share));
		candidate->test->p = least;
		candidate->test->significant = least <= SIGNIFICANCE_LEVEL;
		if (candidate->same_as != SIZE_MAX)
			left -= candidate->weight;
	}
}

/* What is to be judged, and how firmly it is known; judge->candidates is due to be freed. */
static void prepare(struct judge *judge, struct significance_test *tests, size_t count)
{
	struct significance *of = judge->of;

	assert(tests || !count);
	of->method = measures_spread(of) ? SIGNIFICANCE_BLOCKS : SIGNIFICANCE_COUNTS;
	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		if (of->method == SIGNIFICANCE_BLOCKS && of->total[side] > 0)
			judge->freedom_own[SPREAD_BLOCKS] += (double)of->blocks[side] - 1;
	judge->freedom_own[SPREAD_SERIES] = series_freedom(of);
	judge->candidates = mem_new_array(struct candidate, count + 1);
	for (size_t i = 0; i < count; i++)
		add_candidate(judge, &tests[i]);
	find_equals(judge);
	of->dispersion = SIGNIFICANCE_DISPERSION_ASSUMED;
	of->series_dispersion = 0;
	of->freedom = FREEDOM_MAX;
	if (judge->freedom_own[SPREAD_BLOCKS] > 0) {
		find_typical(judge, SPREAD_BLOCKS);
		of->dispersion = judge->typical[SPREAD_BLOCKS];
		of->freedom =
			judge->freedom_own[SPREAD_BLOCKS] + judge->freedom_prior[SPREAD_BLOCKS];
	}
	if (judge->freedom_own[SPREAD_SERIES] > 0) {
		find_typical(judge, SPREAD_SERIES);
		of->series_dispersion = judge->typical[SPREAD_SERIES];
	}
}

/* Wilson's score interval of a share, with so many samples as the dispersion leaves. */
static void set_interval(const struct significance *of, struct significance_test *test,
			 double dispersion, double bound)
{
	double total = of->total[SIGNIFICANCE_OTHER];
	double share = test->value[SIGNIFICANCE_OTHER] / total;
	double samples = total * of->samples_per_value / fmax(1, dispersion);
	double z = bound * bound / samples;
	double middle = (share + z / 2) / (1 + z);
	double half = bound * sqrt(share * (1 - share) / samples + z / samples / 4) / (1 + z);

	/* Both ends meet the value exactly; rounding must not part them. */
	test->low = share > 0 ? fmax(0, middle - half) * total : 0;
	test->high = share < 1 ? fmin(1, middle + half) * total : total;
}

void significance_intervals(struct significance *of, struct significance_test *tests, size_t count)
{
	struct judge judge = { .of = of, .total = of->total[SIGNIFICANCE_OTHER] };
	double bound;

	assert(tests || !count);
	of->method = SIGNIFICANCE_NONE;
	of->tests = 0;
	if (!(of->samples_per_value > 0) || !(judge.total > 0))
		return;
	prepare(&judge, tests, count);
	bound = student_bound(SIGNIFICANCE_OUTSIDE, of->freedom);
	for (size_t i = 0; i < count; i++)
		if (!tests[i].tested)
			set_interval(of, &tests[i], of->dispersion, bound);
	for (size_t i = 0; i < judge.count; i++) {
		struct candidate *candidate = &judge.candidates[i];

		set_interval(of, candidate->test,
			     of->method == SIGNIFICANCE_BLOCKS
				     ? moderated(&judge, SPREAD_BLOCKS, candidate)
				     : SIGNIFICANCE_DISPERSION_ASSUMED,
			     bound);
	}
	free(judge.candidates);
}

void significance_judge(struct significance *of, struct significance_test *tests, size_t count)
{
	struct judge judge = { .of = of };

	assert(tests || !count);
	of->method = SIGNIFICANCE_NONE;
	of->tests = 0;
	judge.total = of->total[SIGNIFICANCE_BASE] + of->total[SIGNIFICANCE_OTHER];
	if (!(of->samples_per_value > 0) || !(of->total[SIGNIFICANCE_BASE] > 0) ||
	    !(of->total[SIGNIFICANCE_OTHER] > 0))
		return;
	prepare(&judge, tests, count);
	for (size_t i = 0; i < judge.count; i++) {
		struct candidate *candidate = &judge.candidates[i];

		test_difference(&judge, candidate);
		if (candidate->same_as != i)
			candidate->same_as = SIZE_MAX;
	}
	adjust(&judge);
	free(judge.candidates);
}

static double variance_of(const double *values, size_t count, double mean)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sum / (double)(count - 1) / (double)count;
}

void significance_compare_means(struct significance_mean *mean)
{
	double error[SIGNIFICANCE_SIDES], freedom = 0, both, bound, difference;

	assert(mean->values[0] || !mean->count[0]);
	mean->tested = false;
	for (int side = 0; side < SIGNIFICANCE_SIDES; side++) {
		mean->mean[side] = 0;
		for (size_t i = 0; i < mean->count[side]; i++)
			mean->mean[side] += mean->values[side][i] / (double)mean->count[side];
	}
	if (mean->count[SIGNIFICANCE_BASE] < SIGNIFICANCE_BLOCKS_MIN ||
	    mean->count[SIGNIFICANCE_OTHER] < SIGNIFICANCE_BLOCKS_MIN ||
	    !(mean->mean[SIGNIFICANCE_BASE] > 0))
		return;
	for (int side = 0; side < SIGNIFICANCE_SIDES; side++) {
		error[side] = variance_of(mean->values[side], mean->count[side], mean->mean[side]);
		freedom += error[side] * error[side] / (double)(mean->count[side] - 1);
	}
	both = error[SIGNIFICANCE_BASE] + error[SIGNIFICANCE_OTHER];
	freedom = freedom > 0 ? both * both / freedom : FREEDOM_MAX;
	bound = student_bound(SIGNIFICANCE_OUTSIDE, freedom) * sqrt(both);
	difference = mean->mean[SIGNIFICANCE_OTHER] - mean->mean[SIGNIFICANCE_BASE];
	mean->tested = true;
	mean->low = (difference - bound) / mean->mean[SIGNIFICANCE_BASE];
	mean->high = (difference + bound) / mean->mean[SIGNIFICANCE_BASE];
	mean->p = both > 0 ? student_two_sided(difference / sqrt(both), freedom)
			   : (double)(difference == 0);
	mean->significant = mean->p <= SIGNIFICANCE_LEVEL;
}

void significance_compare_counts(struct significance_mean *mean,
				 const double samples[static SIGNIFICANCE_SIDES],
				 const double seconds[static SIGNIFICANCE_SIDES])
{
	const double *a = &samples[SIGNIFICANCE_BASE], *b = &samples[SIGNIFICANCE_OTHER];
	bool timed = seconds[SIGNIFICANCE_BASE] > 0 && seconds[SIGNIFICANCE_OTHER] > 0;
	double error, ratio, bound = student_bound(SIGNIFICANCE_OUTSIDE, FREEDOM_MAX);

	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		mean->mean[side] = timed ? samples[side] / seconds[side] : samples[side];
	mean->tested = *a * *b > 0 && *a + *b >= SIGNIFICANCE_SAMPLES_MIN;
	if (!mean->tested)
		return;
	ratio = mean->mean[SIGNIFICANCE_OTHER] / mean->mean[SIGNIFICANCE_BASE];
	error = sqrt(SIGNIFICANCE_DISPERSION_ASSUMED * (1 / *a + 1 / *b));
	mean->p = student_two_sided(log(ratio) / error, FREEDOM_MAX);
	mean->low = ratio * exp(-bound * error) - 1;
	mean->high = ratio * exp(bound * error) - 1;
	mean->significant = mean->p <= SIGNIFICANCE_LEVEL;
}
