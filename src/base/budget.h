/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget - how many bytes something may hold at a time: a request, or all requests together.
 *
 * A budget may have a parent, which pays too: what a request holds, the process holds. Whoever
 * lets strangers decide how much memory is needed takes it here before it asks for the memory, and
 * gives it back on release. What cannot be refused where it grows (an array of the store's tables)
 * is taken by force; then whoever makes it grow looks at budget_is_over before the next step.
 * Safe from any thread.
 */
#ifndef FIRN_BASE_BUDGET_H
#define FIRN_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct budget {
	_Atomic int64_t used_bytes;
	int64_t max_bytes; /* set once, before use, as the next */
	struct budget *parent;
};

/* NULL stands for no limit in all of these. */
MUST_USE bool budget_take(struct budget *budget, size_t bytes); /* false: nothing was taken */
void budget_force(struct budget *budget, size_t bytes);
void budget_give(struct budget *budget, size_t bytes);

/* Over 3/4 of the max, or over it: of the budget, or of one that pays with it. */
bool budget_is_tight(const struct budget *budget);
bool budget_is_over(const struct budget *budget);

/*
 * Why it does not go on: ERR_LIMIT when `bytes` more (or what is used) are too much for this
 * budget; ERR_NO_MEMORY when its parents have none left at the moment.
 */
MUST_USE int budget_fail(const struct budget *budget, size_t bytes, const char *what,
			 struct err *err);

#endif
