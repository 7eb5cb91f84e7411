/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_bucket - a bucket in memory whose calls fail on demand: before they did anything, or after
 * they did it and their answer was lost, once or from then on. Any thread; a fault is planned while
 * no call runs.
 */
#ifndef FIRN_TESTS_PERSIST_SIM_BUCKET_H
#define FIRN_TESTS_PERSIST_SIM_BUCKET_H

#include "base/storage/bucket.h"

enum sim_bucket_fault {
	SIM_BUCKET_WHOLE,
	SIM_BUCKET_REFUSES,  /* the call fails, nothing was done */
	SIM_BUCKET_FORGETS,  /* it was done, and fails */
	SIM_BUCKET_CUT,	     /* as the first, and so do all later ones */
	SIM_BUCKET_CUT_LATE, /* as the second, and later ones do nothing and fail */
	SIM_BUCKET_FAULTS
};

struct bucket *sim_bucket_new(void); /* close() frees it */

/* The call number `at` (1 is the next) has this fault; 0: none, and a cut one is whole again. */
void sim_bucket_plan(struct bucket *bucket, enum sim_bucket_fault fault, uint64_t at);
bool sim_bucket_hit(const struct bucket *bucket); /* whether the planned fault came */

/* It takes every put as new, as services that do not know the condition do. */
void sim_bucket_ignore_conditions(struct bucket *bucket);

size_t sim_bucket_count(const struct bucket *bucket, const char *part_of_key);

#endif
