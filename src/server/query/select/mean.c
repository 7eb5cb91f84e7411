/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/select/mean.h"

#include <assert.h>

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int64_t mean_denominator(int64_t denominator, uint32_t count)
{
	int64_t multiple;

	assert(denominator > 0);
	if (__builtin_mul_overflow(denominator, count / common_divisor(denominator, count),
				   &multiple) ||
	    multiple > MEAN_DENOMINATOR_MAX)
		return MEAN_DENOMINATOR_MAX;
	return multiple;
}

int64_t mean_weight(int64_t denominator, uint32_t count)
{
	return (denominator + count / 2) / count;
}

int64_t mean_round(mean_wide numerator, int64_t denominator)
{
	mean_wide whole = numerator, rest = 0;

	assert(denominator > 0);
	if (denominator != 1) {
		whole = numerator / denominator;
		rest = numerator % denominator;
	}
	if (rest >= denominator - rest)
		whole++;
	else if (-rest >= denominator + rest)
		whole--;
	if (whole > INT64_MAX)
		return INT64_MAX;
	return whole < INT64_MIN ? INT64_MIN : (int64_t)whole;
}
