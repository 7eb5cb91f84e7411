/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches - small profiles whose content follows from a number, and what a store should say
 * about them: report n of series s starts at second BATCHES_START_S + n, has batch id n + 1 and
 * rows whose values follow from n.
 */
#ifndef FIRN_TESTS_PERSIST_BATCHES_H
#define FIRN_TESTS_PERSIST_BATCHES_H

#include "base/clock.h"
#include "server/persist/store.h"

/* For steps of a test that are made to fail, and may: what they left behind is looked at later. */
static inline void may_fail(int rc)
{
	(void)rc;
}

#define BATCHES_START_S 1700000000ll
#define BATCHES_SERIES 3

int64_t batches_clock(void *context); /* the time in the int64_t behind context */

/* Adds report `n` to `tables`. */
void batches_add(struct tables *tables, uint32_t n);

/* Appends report n alone. */
int batches_append(struct store *store, uint32_t n, struct append_result *ret, struct err *err);

/*
 * Looks at everything in the store: found[n] counts report n. Fails the test on a report that was
 * never made, or whose rows, totals or labels differ. Returns how many parts were unreadable.
 */
size_t batches_find(struct store *store, uint32_t *found, uint32_t count);

/* A group with these columns, all in kind, named for the test of cumulative values. */
uint32_t batches_series(struct tables *tables, const char *name, const enum column_kind *kinds,
			uint32_t columns);
uint32_t batches_stack(struct tables *tables, const char *const *functions, size_t count);

#endif
