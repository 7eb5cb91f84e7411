/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/budget.h"

#include <assert.h>

bool budget_take(struct budget *budget, size_t bytes)
{
	int64_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);

	do {
		if (bytes > (uint64_t)budget->max_bytes ||
		    used > budget->max_bytes - (int64_t)bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &used,
							used + (int64_t)bytes, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

void budget_force(struct budget *budget, size_t bytes)
{
	atomic_fetch_add_explicit(&budget->used_bytes, (int64_t)bytes, memory_order_relaxed);
}

void budget_give(struct budget *budget, size_t bytes)
{
	int64_t before = atomic_fetch_sub_explicit(&budget->used_bytes, (int64_t)bytes,
						   memory_order_relaxed);

	assert(before >= (int64_t)bytes);
}

bool budget_is_tight(const struct budget *budget)
{
	return atomic_load_explicit(&budget->used_bytes, memory_order_relaxed) >
	       budget->max_bytes / 4 * 3;
}
