/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_budget - bounds the CPU time for reading /proc and opening files: a share of one core, after
 * a burst (a starting agent has many processes to read).
 *
 * A host may start thousands of processes per second: reads over the budget are skipped, counted,
 * and tried again with a later sample.
 */
#ifndef FIRN_AGENT_PROCS_PROC_BUDGET_H
#define FIRN_AGENT_PROCS_PROC_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define PROC_BUDGET_BURST_NS CLOCK_NS_PER_S
#define PROC_BUDGET_SHARE 10 /* one part in so many of a core */

struct proc_budget {
	int64_t left_ns;
	int64_t filled_at_ns; /* monotonic; 0 = never: the burst is there */
};

/* True if there is something left; `now_ns` is monotonic. */
static inline bool proc_budget_allows(struct proc_budget *budget, int64_t now_ns)
{
	if (!budget->filled_at_ns) {
		budget->left_ns = PROC_BUDGET_BURST_NS;
		budget->filled_at_ns = now_ns;
	}
	if (now_ns > budget->filled_at_ns) {
		budget->left_ns += (now_ns - budget->filled_at_ns) / PROC_BUDGET_SHARE;
		budget->filled_at_ns = now_ns;
		if (budget->left_ns > PROC_BUDGET_BURST_NS)
			budget->left_ns = PROC_BUDGET_BURST_NS;
	}
	return budget->left_ns > 0;
}

/* Takes off what was spent, which may be more than was left. */
static inline void proc_budget_spend(struct proc_budget *budget, int64_t spent_ns)
{
	budget->left_ns -= spent_ns;
}

#endif
