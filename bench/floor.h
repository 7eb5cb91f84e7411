/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor - the fewest bits that the samples of a workload can take.
 *
 * A report is a bag of stacks, drawn independently by the law of its partition (type and service):
 * what it takes is log2 of 1 / its multinomial probability, so order is free, plus its total (the
 * better of a Poisson and a geometric law with the mean of its series), plus which series report at
 * which time. The law is what the generator knows; for real data it is the frequencies in the data
 * themselves, which is less than any law that is known beforehand would give. What a law costs to
 * tell belongs to the dictionary.
 */
#ifndef FIRN_BENCH_FLOOR_H
#define FIRN_BENCH_FLOOR_H

#include "bench/workload.h"

struct floor_bits {
	uint64_t rows, samples, reports, series, partitions;
	uint64_t stacks; /* distinct (partition, stack) pairs */
	uint64_t nodes;
	double known_bits;    /* rows by the generator's law; 0 when there is none */
	double observed_bits; /* rows by their own frequencies */
	double totals_bits, times_bits;
};

struct floor_bits floor_of(const struct workload *workload);
void floor_print(const struct floor_bits *bits);

#endif
