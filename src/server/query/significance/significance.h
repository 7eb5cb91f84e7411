/* SPDX-License-Identifier: Apache-2.0 */
/*
 * significance - which shares differ between two profiles by more than noise.
 *
 * Each side is cut into blocks. A test is one function's part of the values: of side s with total T
 * it has X, and S = sum over blocks of x * x / t. Were samples independent, x would be binomial;
 * programs have phases, so the spread between blocks, S - X * X / T, is compared to the binomial
 * one: their ratio is the function's dispersion (Pearson's, of a quasi-binomial model). Blocks are
 * few, hence dispersions are moderated by those of functions of about the same share, as limma does
 * for genes (Smyth, Linear models and empirical Bayes methods, 2004); they are never below what
 * sampling alone gives or the function itself shows. The difference of shares over its error is
 * then Student's t. Holm's procedure over all distinct tests bounds the chance of any false alarm;
 * the level is shared out in proportion to a power of the function's share, because changes of
 * large functions matter most (weights as of Genovese, Roeder, Wasserman 2006: they must not depend
 * on the difference, and these do not).
 *
 * Where a side has several series (hosts, processes), these are blocks of another kind. What makes
 * two processes of one program differ lasts as long as they do, so time does not show it. With u
 * the part of a series in the difference of shares, (x - p * t) / T of one side less that of the
 * other, the difference's variance is the sum of u * u (as of clusters in a survey; series that
 * both sides have are pairs by this). As a dispersion it is moderated likewise, and the larger of
 * the two counts. It exists only for functions that several series have.
 *
 * Functions with too few samples to show a change are not tested; as that depends on both sides
 * together, it does not bias the tests. Equal tests (a function and its only callee) count once.
 * With too few blocks, a dispersion and a drift of shares are assumed. Pure functions over the
 * caller's arrays.
 */
#ifndef FIRN_SERVER_QUERY_SIGNIFICANCE_SIGNIFICANCE_H
#define FIRN_SERVER_QUERY_SIGNIFICANCE_SIGNIFICANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The promised share of false alarms. Tests are made at a quarter of it, as dispersions are
 * estimates and programs vary more slowly, too, than the blocks of one sample show.
 */
#define SIGNIFICANCE_ALARMS_MAX 0.05
#define SIGNIFICANCE_LEVEL (SIGNIFICANCE_ALARMS_MAX / 4)
#define SIGNIFICANCE_OUTSIDE 0.05	  /* of intervals */
#define SIGNIFICANCE_BLOCKS_MIN 4	  /* per side; fewer say nothing about the spread */
#define SIGNIFICANCE_SERIES_FREEDOM_MIN 2 /* two series against two, or three that are pairs */
#define SIGNIFICANCE_SERIES_EVEN_MIN                                                               \
	2.5				  /* among so many even ones a function is spread at least \
					   */
#define SIGNIFICANCE_DISPERSION_ASSUMED 4 /* then: twice the error of independent samples, */
#define SIGNIFICANCE_DRIFT_ASSUMED 0.05	  /* and a share is off by so much of itself */
#define SIGNIFICANCE_SAMPLES_MIN 25 /* of a function, and of all others, on both sides together */

enum significance_side { SIGNIFICANCE_BASE, SIGNIFICANCE_OTHER, SIGNIFICANCE_SIDES };

enum significance_method {
	SIGNIFICANCE_NONE,   /* values are no counted samples, or there are none */
	SIGNIFICANCE_COUNTS, /* dispersion assumed */
	SIGNIFICANCE_BLOCKS, /* dispersion measured */
};

struct significance_test {
	/* in, by side */
	double value[SIGNIFICANCE_SIDES];
	double spread[SIGNIFICANCE_SIDES]; /* S above */
	double series_squares;		   /* sum of u * u, */
	double series_weights;		   /* and of squares of the shares that each series gives */
	/* out */
	double share[SIGNIFICANCE_SIDES];
	double low, high; /* 95 % interval of the difference of shares */
	double p;	  /* adjusted */
	bool tested, significant;
};

struct significance {
	/* in */
	double total[SIGNIFICANCE_SIDES];
	size_t blocks[SIGNIFICANCE_SIDES];
	size_t series[SIGNIFICANCE_SIDES]; /* or groups of them; 0: not looked at, */
	size_t series_both;		   /* of these, those that both sides have */
	double samples_per_value; /* 1 for counts, 1 / period for times; 0: not counted samples */
	/* out */
	enum significance_method method;
	size_t tests;		  /* distinct */
	double dispersion;	  /* the typical one, between blocks, */
	double series_dispersion; /* and between series; 0: not known */
	double freedom;		  /* degrees of freedom of a test */
};

void significance_judge(struct significance *significance, struct significance_test *tests,
			size_t count);

/*
 * Of one side alone (SIGNIFICANCE_OTHER; the base is all 0): the 95 % interval of each value, in
 * `low` and `high`, given the total. The dispersion is the one that tests use, the typical one
 * where there are few samples; the interval is Wilson's, which also holds for few.
 */
void significance_intervals(struct significance *significance, struct significance_test *tests,
			    size_t count);

/* A quantity measured once per block, compared: values per second. */
struct significance_mean {
	const double *values[SIGNIFICANCE_SIDES];
	size_t count[SIGNIFICANCE_SIDES];
	/* out: means, the 95 % interval of their ratio - 1, Welch's test */
	double mean[SIGNIFICANCE_SIDES];
	double low, high, p;
	bool tested, significant;
};
void significance_compare_means(struct significance_mean *mean);
/* From sums alone, with the assumed dispersion: so many samples in so much time (0: as much). */
void significance_compare_counts(struct significance_mean *mean,
				 const double samples[static SIGNIFICANCE_SIDES],
				 const double seconds[static SIGNIFICANCE_SIDES]);

#endif
