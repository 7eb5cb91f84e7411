/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/significance/student.h"

#include <assert.h>
#include <math.h>

#define STEPS_MAX 500
#define TINY 1e-300
#define PRECISION 1e-14
#define BOUND_MAX 1e6
#define SERIES_FROM 12.0 /* from here the asymptotic series are exact enough */
#define NORMAL_FROM 1e7

static double away_from_zero(double x)
{
	return fabs(x) < TINY ? TINY : x;
}

/* The continued fraction of the incomplete beta function (Lentz; Numerical Recipes 6.4). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m < STEPS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double change;

		d = 1 / away_from_zero(1 + even * d);
		c = away_from_zero(1 + even / c);
		h *= d * c;
		d = 1 / away_from_zero(1 + odd * d);
		c = away_from_zero(1 + odd / c);
		change = d * c;
		h *= change;
		if (fabs(change - 1) < PRECISION)
			break;
	}
	return h;
}

/* lgamma keeps a sign in a global variable; this one does not. */
static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign);
}

/* The regularised incomplete beta function; `rest` is 1 - x, where that is known better. */
static double beta(double a, double b, double x, double rest)
{
	double front;

	if (x <= 0 || rest <= 0)
		return x <= 0 ? 0 : 1;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(rest));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, rest) / b;
}

double student_two_sided(double t, double freedom)
{
	double square = t * t;

	if (isinf(t))
		return 0;
	if (freedom > NORMAL_FROM)
		return erfc(fabs(t) / M_SQRT2);
	return beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square));
}

double student_bound(double p, double freedom)
{
	double low = 0, high = BOUND_MAX;

	for (int i = 0; i < STEPS_MAX && high - low > PRECISION * high; i++) {
		double middle = (low + high) / 2;

		if (student_two_sided(middle, freedom) > p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double student_digamma(double x)
{
	double below = 0, r;

	for (; x < SERIES_FROM; x++)
		below -= 1 / x;
	r = 1 / (x * x);
	return below + log(x) - 0.5 / x -
	       r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r / 240)));
}

double student_trigamma(double x)
{
	double below = 0, r;

	for (; x < SERIES_FROM; x++)
		below += 1 / (x * x);
	r = 1 / (x * x);
	return below + 1 / x + r / 2 + r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r / 30)));
}

double student_trigamma_inverse(double y)
{
	double low = 0, high = 1;

	assert(y > 0);
	while (student_trigamma(high) > y && high < BOUND_MAX)
		high *= 2;
	for (int i = 0; i < STEPS_MAX && high - low > PRECISION * high; i++) {
		double middle = (low + high) / 2;

		if (student_trigamma(middle) > y)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}
