/* SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"

#include <assert.h>

static int64_t used(const struct budget *budget)
{
	return atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
}

static bool take_one(struct budget *budget, size_t bytes)
{
	int64_t before = used(budget);

	do {
		if (bytes > (uint64_t)budget->max_bytes ||
		    before > budget->max_bytes - (int64_t)bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&budget->used_bytes, &before, before + (int64_t)bytes, memory_order_relaxed,
		memory_order_relaxed));
	return true;
}

static void give_one(struct budget *budget, size_t bytes)
{
	int64_t before = atomic_fetch_sub_explicit(&budget->used_bytes, (int64_t)bytes,
						   memory_order_relaxed);

	assert(before >= (int64_t)bytes);
}

bool budget_take(struct budget *budget, size_t bytes)
{
	for (struct budget *at = budget; at; at = at->parent) {
		if (take_one(at, bytes))
			continue;
		for (struct budget *paid = budget; paid != at; paid = paid->parent)
			give_one(paid, bytes);
		return false;
	}
	return true;
}

void budget_force(struct budget *budget, size_t bytes)
{
	for (; budget; budget = budget->parent)
		atomic_fetch_add_explicit(&budget->used_bytes, (int64_t)bytes,
					  memory_order_relaxed);
}

bool budget_take_alone(struct budget *budget, size_t bytes, size_t others)
{
	int64_t before;

	if (!budget)
		return true;
	before = used(budget);
	do {
		if (before > (int64_t)others)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&budget->used_bytes, &before, before + (int64_t)bytes, memory_order_relaxed,
		memory_order_relaxed));
	budget_force(budget->parent, bytes);
	return true;
}

void budget_give(struct budget *budget, size_t bytes)
{
	for (; budget; budget = budget->parent)
		give_one(budget, bytes);
}

bool budget_is_tight(const struct budget *budget)
{
	for (; budget; budget = budget->parent)
		if (used(budget) > budget->max_bytes / 4 * 3)
			return true;
	return false;
}

bool budget_is_over(const struct budget *budget)
{
	for (; budget; budget = budget->parent)
		if (used(budget) > budget->max_bytes)
			return true;
	return false;
}

int budget_fail(const struct budget *budget, size_t bytes, const char *what, struct err *err)
{
	bool is_own = bytes > (uint64_t)budget->max_bytes ||
		      used(budget) > budget->max_bytes - (int64_t)bytes;

	if (is_own)
		return err_set(err, ERR_LIMIT,
			       "%s: it takes more than %lld MB of memory; send smaller requests",
			       what, (long long)(budget->max_bytes >> 20));
	return err_set(err, ERR_NO_MEMORY, "%s: other requests have all memory for them; try again",
		       what);
}
