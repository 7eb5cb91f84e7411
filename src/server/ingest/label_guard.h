/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_guard - limits new label values: a label whose values never repeat (a request id, a time)
 * would make a series of each profile, and a store that is all directory.
 *
 * Each label of a tenant may have values_max new values within LABEL_GUARD_SPAN_NS. Values known
 * from this span or the one before always pass, so a large, steady fleet is not limited. Names of
 * labels are bounded likewise (LABEL_GUARD_NAMES_MAX).
 *
 * Values are known by 64 bits of their hash: a new one passes as known with a chance of one in
 * 10^14 for 100,000 values. Memory: some 20 bytes per value, for two spans. After a restart no
 * value is known. Any thread.
 */
#ifndef FIRN_SERVER_INGEST_LABEL_GUARD_H
#define FIRN_SERVER_INGEST_LABEL_GUARD_H

#include "base/clock.h"
#include "base/err.h"
#include "base/slice.h"

#define LABEL_GUARD_SPAN_NS (3600 * CLOCK_NS_PER_S)
#define LABEL_GUARD_NAMES_MAX 4096u

struct label_guard;

/* `values_max` new values per label and span; more than 0. */
struct label_guard *label_guard_new(uint32_t values_max);
void label_guard_free(struct label_guard *guard); /* accepts NULL */

struct label_guard_pair {
	struct slice name, value;
};

/*
 * Checks all labels of one series: 0, and all are known from now on; or ERR_INVALID, which names
 * the label, and none becomes known. `now_ns` is monotonic.
 */
int label_guard_check(struct label_guard *guard, struct slice tenant,
		      const struct label_guard_pair *pairs, size_t count, int64_t now_ns,
		      struct err *err);

#endif
