/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission - a bounded number of seats to compute: the other queries wait.
 *
 * Large queries get at most half of all seats, so that a small query never waits behind large
 * ones alone; both are served in order of arrival, so that large ones do not starve. Between
 * clients, the one that has the fewest seats comes first, then the one that was served longest
 * ago. Where tenants are told apart, the same holds between these before it does between clients;
 * one tenant never has all seats, nor more than three quarters of the places in the queue, and
 * from a full queue the newest of the tenant that has most there makes room for one that has fewer.
 * The queue is bounded: a query beyond it fails with ERR_NO_MEMORY (429 with Retry-After). A
 * query that waits gives up within ADMISSION_LOOK_NS when its client has left, when it is stopped,
 * or at its deadline.
 *
 * A query that failed because others held the memory asks for a seat alone (ADMISSION_ALONE): no
 * query that arrived later gets one before.
 *
 * Thread-safe. A seat belongs to the thread that took it.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_ADMISSION_H
#define FIRN_SERVER_SERVE_ADMISSION_ADMISSION_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/slice.h"

#define ADMISSION_WAITING_DEFAULT 48u
#define ADMISSION_RUNNING_MAX 12u /* and with those that wait fewer than there are workers */
#define ADMISSION_LOOK_NS (50 * CLOCK_NS_PER_MS)

struct admission;
struct admission_seat;
struct net_request; /* net/server.h */

/*
 * A middle one counts as large while large answers are unread (net_request_others_read): what they
 * and the queries that run hold is bounded together.
 */
enum admission_size { ADMISSION_SMALL, ADMISSION_MIDDLE, ADMISSION_LARGE, ADMISSION_ALONE };

struct admission_ask {
	const struct net_request *request; /* until the seat is given back */
	struct slice client; /* bytes that tell clients apart; only their hash is kept */
	bool has_tenant;     /* tenants are told apart */
	struct slice tenant; /* likewise; "" is one of them */
	enum admission_size size;
	bool at_once;		       /* ERR_BUSY instead of waiting */
	int64_t deadline_at_ns;	       /* monotonic; 0 = none */
	const _Atomic bool *cancelled; /* may be NULL, as the next */
	const _Atomic bool *stopped;
};

/* `running_max` 0: by the CPUs, at most ADMISSION_RUNNING_MAX. */
struct admission *admission_new(uint32_t running_max, uint32_t waiting_max);
void admission_free(struct admission *admission); /* accepts NULL; nobody runs or waits */

/* ERR_NO_MEMORY, ERR_BUSY, ERR_CANCELLED, ERR_DEADLINE. */
int admission_take(struct admission *admission, const struct admission_ask *ask,
		   struct admission_seat **ret, struct err *err);
void admission_give(struct admission *admission, struct admission_seat *seat); /* accepts NULL */

/*
 * For those that wait for another's answer (coalesce.h): each keeps a worker busy too, so that it
 * counts as one that waits. ERR_NO_MEMORY.
 */
int admission_join(struct admission *admission, const struct admission_ask *ask,
		   struct admission_seat **ret, struct err *err);
void admission_leave(struct admission *admission, struct admission_seat *place);

uint32_t admission_waiting(struct admission *admission); /* with those that joined */

/*
 * With the lock: until *is_done, which it guards, is true. ERR_CANCELLED, ERR_DEADLINE: the caller
 * gives up earlier.
 */
int admission_wait(const struct admission_ask *ask, struct lock *lock, struct lock_condition *wake,
		   const bool *is_done, struct err *err);

#endif
