/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/diff/series_noise.h"

#include <assert.h>
#include <math.h>

#include "server/query/diff/compare.h"
#include "server/query/significance/student.h"

/* Neighbouring differences share points: what they tell of a variance (von Neumann 1941). */
#define FREEDOM_PER_DIFFERENCE (2.0 / 3)
#define FREEDOM_ASSUMED 1e9

double series_noise_samples(const struct query_series_set *set)
{
	return set->has_times ? 0 : compare_samples_per_value(&set->type, set->period);
}

struct series_noise series_noise_of(const struct query_series *series, double samples_per_value)
{
	struct series_noise noise = { .method = SIGNIFICANCE_NONE,
				      .samples_per_value = samples_per_value };
	size_t count = 0;
	double sum = 0;

	assert(series->points || !series->points_count);
	if (!(samples_per_value > 0))
		return noise;
	for (size_t i = 1; i < series->points_count; i++) {
		const struct query_point *a = &series->points[i - 1], *b = &series->points[i];
		double x = (double)a->value * samples_per_value, s = a->reports;
		double y = (double)b->value * samples_per_value, t = b->reports;

		if (!(x + y > 0) || !(s * t > 0))
			continue;
		sum += (x * t - y * s) * (x * t - y * s) / (s * t * (x + y));
		count++;
	}
	noise.method = SIGNIFICANCE_COUNTS;
	noise.dispersion = SIGNIFICANCE_DISPERSION_ASSUMED;
	noise.freedom = FREEDOM_ASSUMED;
	if (count + 1 < SIGNIFICANCE_BLOCKS_MIN)
		return noise;
	noise.method = SIGNIFICANCE_BLOCKS;
	noise.dispersion = fmax(1, sum / (double)count);
	noise.freedom = FREEDOM_PER_DIFFERENCE * (double)count;
	return noise;
}

/* The score interval of a Poisson mean, with so many samples as the dispersion leaves. */
void series_noise_interval(const struct series_noise *noise, int64_t value, double *ret_low,
			   double *ret_high)
{
	double unit = noise->samples_per_value / noise->dispersion;
	double samples = fmax(0, (double)value) * unit;
	double bound = student_bound(SIGNIFICANCE_OUTSIDE, noise->freedom);
	double middle = samples + bound * bound / 2;
	double half = bound * sqrt(samples + bound * bound / 4);

	*ret_low = samples > 0 ? (middle - half) / unit : 0;
	*ret_high = (middle + half) / unit;
}
