/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team - a few threads that share the steps of one query.
 *
 * A query takes the CPUs that this process may use, divided by the queries that run just now, or as
 * many as query_limits.threads_max says. Threads live for one call: they cost some 30 us each, so
 * callers say whether there is enough to do (`cost`, in ns or so). Which thread takes which step
 * varies; steps therefore write to places of their own, and the results are combined in the order
 * of their indexes.
 */
#ifndef FIRN_SERVER_QUERY_TEAM_H
#define FIRN_SERVER_QUERY_TEAM_H

#include "server/query/work.h"

#define TEAM_COST_MIN 200000u /* below this one thread does it */

/* `work` is the thread's own. What is allocated in it lives until the query's work ends. */
typedef int team_step_f(void *context, struct work *work, size_t index, struct err *err);

/* Steps 0 .. count-1; of several errors that of the lowest index is returned. */
int team_run(struct work *work, size_t count, uint64_t cost, team_step_f *step, void *context,
	     struct err *err);

/* How many threads a call would use now, if it were worth it. */
uint32_t team_size(const struct work *work);

#endif
