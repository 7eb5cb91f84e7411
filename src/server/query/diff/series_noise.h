/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series_noise - how exactly the points of a time series are known.
 *
 * A point counts samples: if n samples are independent, another run has n, give or take sqrt(n).
 * Programs vary more than that; how much more is measured between neighbouring points, so that slow
 * changes, which the series is meant to show, do not count: (x - y)^2 / (x + y) is 1 in the mean
 * for points of equal length that differ by sampling alone (for lengths s and t, (x t - y s)^2 / (s
 * t (x + y))); the mean of that is the dispersion, never taken for less than 1. A point's length is
 * its number of reports. Pure functions.
 */
#ifndef FIRN_SERVER_QUERY_DIFF_SERIES_NOISE_H
#define FIRN_SERVER_QUERY_DIFF_SERIES_NOISE_H

#include "server/query/query.h"
#include "server/query/significance/significance.h"

struct series_noise {
	enum significance_method method; /* COUNTS: too few points, the dispersion is assumed */
	double samples_per_value;
	double dispersion, freedom;
};

/* How many samples a value of 1 of these series stands for; 0: values do not count samples. */
double series_noise_samples(const struct query_series_set *set);

/* samples_per_value as in struct significance; 0 gives SIGNIFICANCE_NONE. */
struct series_noise series_noise_of(const struct query_series *series, double samples_per_value);

/* The 95 % interval of a point's value, when the method is not SIGNIFICANCE_NONE. */
void series_noise_interval(const struct series_noise *noise, int64_t value, double *ret_low,
			   double *ret_high);

#endif
