/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns - who may compute now: as many questions as the machine has use for, the others wait.
 *
 * Small questions and large ones have turns of their own: large ones have at most half of all, so
 * that small ones are never behind them alone, and are served in order with the rest, so that they
 * are not starved. Between clients turns go round: who has fewest now comes first, then who was
 * served longest ago. The queue is bounded: beyond it a question is refused (ERR_NO_MEMORY: 429
 * with Retry-After). Who waits gives up when the client has gone, when it is told to stop, or at
 * its deadline, within TURNS_LOOK_NS.
 *
 * Who could not go on because others had the memory asks for a turn alone: then nobody who came
 * later gets one before.
 *
 * Thread-safe. A turn belongs to who took it.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_ADMISSION_H
#define FIRN_SERVER_SERVE_ADMISSION_ADMISSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/slice.h"

#define TURNS_WAITING_DEFAULT 48u
#define TURNS_RUNNING_MAX 12u /* and with those that wait fewer than there are workers */
#define TURNS_LOOK_NS (50 * CLOCK_NS_PER_MS)

struct turns;
struct turn;

enum turns_size { TURNS_SMALL, TURNS_LARGE, TURNS_ALONE };

struct turns_ask {
	struct slice client; /* bytes that tell clients apart; only their hash is kept */
	enum turns_size size;
	bool at_once;		       /* ERR_BUSY instead of waiting */
	int64_t deadline_at_ns;	       /* monotonic; 0 = none */
	const _Atomic bool *cancelled; /* may be NULL, as the next */
	const _Atomic bool *stopped;
};

/* `running_max` 0: by the CPUs, at most TURNS_RUNNING_MAX. */
struct turns *turns_new(uint32_t running_max, uint32_t waiting_max);
void turns_free(struct turns *turns); /* accepts NULL; nobody runs or waits */

/* ERR_NO_MEMORY, ERR_BUSY, ERR_CANCELLED, ERR_DEADLINE. */
int turns_take(struct turns *turns, const struct turns_ask *ask, struct turn **ret,
	       struct err *err);
void turns_give(struct turns *turns, struct turn *turn); /* accepts NULL */

/*
 * For those that wait for another's answer (shared.h): each keeps a worker busy too, so that it
 * counts as one that waits. ERR_NO_MEMORY.
 */
int turns_join(struct turns *turns, struct err *err);
void turns_leave(struct turns *turns);

uint32_t turns_waiting(struct turns *turns); /* with those that joined */

/* A condition on the monotonic clock, for turns_wait. */
void turns_wake_init(pthread_cond_t *wake);
/*
 * With the lock: until *is_done, which it guards, is true. ERR_CANCELLED, ERR_DEADLINE: who asks
 * gives up before.
 */
int turns_wait(const struct turns_ask *ask, pthread_mutex_t *lock, pthread_cond_t *wake,
	       const bool *is_done, struct err *err);

#endif
