/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock - a mutex that knows its name, its rank and its owner, and the condition that goes with it.
 *
 * Ranks rule out deadlocks: a thread takes locks in rising order of rank. Builds with tests
 * (-Dtests=true, which defines LOCK_CHECKS_ORDER) abort with both names when a thread takes a lock
 * whose rank is not above those it holds; lock_try never waits and is exempt. Every build aborts
 * when a thread takes a lock twice, gives one that it does not hold, or fails lock_assert_held:
 * beyond the mutex this costs one load and one store of the owner.
 *
 * The caller owns the struct, and must not move it. Any thread may call; a lock is given by the
 * thread that took it. Conditions are on the monotonic clock. A wait may return early: callers
 * look at their state in a loop.
 */
#ifndef FIRN_BASE_LOCK_H
#define FIRN_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define LOCK_HELD_MAX 16 /* by one thread at once */

/*
 * Where the ranks of each part begin, outermost first; a part orders its own locks by adding to
 * its own. Rendering the metrics asks every part for its numbers, so that lock comes first.
 */
enum lock_rank {
	LOCK_METRICS = 1,
	LOCK_CLI = 100,
	LOCK_AGENT = 200,
	LOCK_SCRAPE = 250,
	LOCK_SERVE = 300,
	LOCK_ACCESS = 400,
	LOCK_DEBUGINFO = 500,
	LOCK_RESOLVE = 600,
	LOCK_QUERY = 700,
	LOCK_STORE = 800,
	LOCK_NET = 900,
	LOCK_MEMORY = 1000,
	LOCK_LOG = 1001,
};

struct lock {
	pthread_mutex_t mutex;
	_Atomic(const void *) owner; /* lock_thread() of who holds it, or NULL */
	const char *name;	     /* static: "store.seal" */
	unsigned int rank;
};

struct lock_condition {
	pthread_cond_t condition;
};

#define LOCK_INITIALIZER(name, rank)                                                               \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER, NULL, name, rank                                        \
	}

#define LOCK_CONDITION_INITIALIZER                                                                 \
	{                                                                                          \
		PTHREAD_COND_INITIALIZER                                                           \
	}

void lock_init(struct lock *lock, const char *name, unsigned int rank);
void lock_free(struct lock *lock); /* nobody holds it */

void lock_take(struct lock *lock);
MUST_USE bool lock_try(struct lock *lock); /* false: another thread holds it */
void lock_give(struct lock *lock);

void lock_condition_init(struct lock_condition *condition);
void lock_condition_free(struct lock_condition *condition);

/* Gives the lock while it waits. The lock is the last in rank that the thread holds. */
void lock_wait(struct lock_condition *condition, struct lock *lock);
/* Until a time of clock_monotonic_ns() at the latest: false when that has come. */
bool lock_wait_until(struct lock_condition *condition, struct lock *lock, int64_t at_ns);
void lock_signal(struct lock_condition *condition);
void lock_broadcast(struct lock_condition *condition);

/* Identifies the calling thread as long as it runs; never NULL. */
const void *lock_thread(void);
bool lock_is_held(const struct lock *lock); /* by the calling thread */
void lock_die_not_held(const struct lock *lock) __attribute__((noreturn));

/* The calling thread holds the lock, or the process aborts with its name. */
static inline void lock_assert_held(const struct lock *lock)
{
	if (!lock_is_held(lock))
		lock_die_not_held(lock);
}

#endif
