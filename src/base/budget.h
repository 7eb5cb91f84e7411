/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget - how many bytes something may hold at a time: a request, or all requests together.
 *
 * A budget may have a parent, which is charged too: what a request holds, the process holds. Code
 * whose need of memory depends on outside bytes takes from the budget before it allocates, and
 * gives back on release. Where growth cannot be refused (an array of the store's tables), it takes
 * by force, and its caller checks budget_is_over before the next step. Safe from any thread.
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
/* By force, if not more than `others` is used: one may have more than there is for all. */
MUST_USE bool budget_take_alone(struct budget *budget, size_t bytes, size_t others);
void budget_give(struct budget *budget, size_t bytes);

/*
 * True if more than 3/4 of the max (tight), or more than the max (over), is used, in this budget or
 * in a parent.
 */
bool budget_is_tight(const struct budget *budget);
bool budget_is_over(const struct budget *budget);

/*
 * Sets the error of a refused take: ERR_LIMIT if this budget can never hold `bytes` more (or what
 * it holds); ERR_NO_MEMORY if a parent has none left at the moment.
 */
MUST_USE int budget_fail(const struct budget *budget, size_t bytes, const char *what,
			 struct err *err);

#endif
