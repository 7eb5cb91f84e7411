/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns - who may compute now: as many queries as the machine has use for, the others wait.
 *
 * Small queries and large ones have turns of their own: large ones have at most half of all, so
 * that small ones are never behind them alone, and are served in order with the rest, so that they
 * are not starved. Between clients turns go round: who has fewest now comes first, then who was
 * served longest ago. The queue is bounded: beyond it a query is refused (ERR_NO_MEMORY: 429
 * with Retry-After). Who waits gives up when the client has gone, when it is told to stop, or at
 * its deadline, within ADMISSION_LOOK_NS.
 *
 * Who could not go on because others had the memory asks for a turn alone: then nobody who came
 * later gets one before.
 *
 * Thread-safe. A turn belongs to who took it.
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
struct ticket;

enum admission_size { ADMISSION_SMALL, ADMISSION_LARGE, ADMISSION_ALONE };

struct admission_ask {
	struct slice client; /* bytes that tell clients apart; only their hash is kept */
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
		   struct ticket **ret, struct err *err);
void admission_give(struct admission *admission, struct ticket *ticket); /* accepts NULL */

/*
 * For those that wait for another's answer (coalesce.h): each keeps a worker busy too, so that it
 * counts as one that waits. ERR_NO_MEMORY.
 */
int admission_join(struct admission *admission, struct err *err);
void admission_leave(struct admission *admission);

uint32_t admission_waiting(struct admission *admission); /* with those that joined */

/*
 * With the lock: until *is_done, which it guards, is true. ERR_CANCELLED, ERR_DEADLINE: who asks
 * gives up before.
 */
int admission_wait(const struct admission_ask *ask, struct lock *lock, struct lock_condition *wake,
		   const bool *is_done, struct err *err);

#endif
