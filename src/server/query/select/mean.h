/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mean - exact sums of means.
 *
 * A gauge over a range is the sum over series of (sum of its reports / number of its reports). All
 * fractions are brought to one denominator, the least common multiple of the counts, so that sums
 * stay integers; the value is rounded once, half away from zero. If the common multiple exceeds
 * 2^61, the denominator is 2^61 instead: exact to 2^-61 of a value.
 */
#ifndef FIRN_SERVER_QUERY_SELECT_MEAN_H
#define FIRN_SERVER_QUERY_SELECT_MEAN_H

#include <stdint.h>

#define MEAN_DENOMINATOR_MAX ((int64_t)1 << 61)

typedef __int128 mean_wide;

/* The common denominator so far (from 1) and one more count (>= 1). */
int64_t mean_denominator(int64_t denominator, uint32_t count);

/* The factor of a value of a series with `count` reports. */
int64_t mean_weight(int64_t denominator, uint32_t count);

/* numerator / denominator, half away from zero, stopping at the ends of int64. */
int64_t mean_round(mean_wide numerator, int64_t denominator);

/* Stops at the ends of 128 bits. */
static inline mean_wide mean_add(mean_wide a, mean_wide b)
{
	mean_wide sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? (mean_wide)(~(unsigned __int128)0 >> 1)
			     : -(mean_wide)(~(unsigned __int128)0 >> 1);
	return sum;
}

#endif
