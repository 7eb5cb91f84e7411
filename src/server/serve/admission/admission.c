/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/admission.h"

#include <sched.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

#define RUNNING_MIN 4u
#define SERVED_KEPT 64u /* clients whose last turn is remembered */

struct turn {
	struct turn *previous, *next; /* of those that wait, oldest first; or of those that run */
	uint64_t client;
	enum turns_size size;
	bool granted;
	pthread_cond_t wake;
};

struct turn_list {
	struct turn *first, *last;
	uint32_t count;
};

struct turns {
	pthread_mutex_t lock; /* guards the rest */
	struct turn_list running, waiting;
	uint32_t running_max, waiting_max, large_max;
	uint32_t joined; /* of waiting_max as well */
	struct served {
		uint64_t client, at; /* in turns given */
	} served[SERVED_KEPT];
	uint64_t given;
};

static uint32_t turns_by_cpus(void)
{
	cpu_set_t set;
	uint32_t count = RUNNING_MIN;

	if (!sched_getaffinity(0, sizeof(set), &set) && (uint32_t)CPU_COUNT(&set) > count)
		count = (uint32_t)CPU_COUNT(&set);
	return count < TURNS_RUNNING_MAX ? count : TURNS_RUNNING_MAX;
}

struct turns *turns_new(uint32_t running_max, uint32_t waiting_max)
{
	struct turns *turns = mem_new(struct turns);

	pthread_mutex_init(&turns->lock, NULL);
	turns->running_max = running_max ? running_max : turns_by_cpus();
	turns->large_max = turns->running_max > 1 ? turns->running_max / 2 : 1;
	turns->waiting_max = waiting_max;
	return turns;
}

void turns_free(struct turns *turns)
{
	if (!turns)
		return;
	pthread_mutex_destroy(&turns->lock);
	free(turns);
}

static void append(struct turn_list *list, struct turn *turn)
{
	turn->previous = list->last;
	turn->next = NULL;
	if (list->last)
		list->last->next = turn;
	else
		list->first = turn;
	list->last = turn;
	list->count++;
}

static void take_out(struct turn_list *list, struct turn *turn)
{
	if (turn->previous)
		turn->previous->next = turn->next;
	else
		list->first = turn->next;
	if (turn->next)
		turn->next->previous = turn->previous;
	else
		list->last = turn->previous;
	list->count--;
}

static uint32_t running_of(const struct turns *turns, uint64_t client)
{
	uint32_t count = 0;

	for (const struct turn *turn = turns->running.first; turn; turn = turn->next)
		count += turn->client == client;
	return count;
}

static uint32_t large_running(const struct turns *turns)
{
	uint32_t count = 0;

	for (const struct turn *turn = turns->running.first; turn; turn = turn->next)
		count += turn->size != TURNS_SMALL;
	return count;
}

static bool somebody_wants_all(const struct turns *turns)
{
	for (const struct turn *turn = turns->waiting.first; turn; turn = turn->next)
		if (turn->size == TURNS_ALONE)
			return true;
	return false;
}

/* `behind`: somebody before it waits to be alone. */
static bool fits(const struct turns *turns, const struct turn *turn, bool behind)
{
	const struct turn *running = turns->running.first;

	if (turn->size == TURNS_ALONE)
		return !running;
	if (behind || (running && running->size == TURNS_ALONE))
		return false;
	return turns->running.count < turns->running_max &&
	       (turn->size == TURNS_SMALL || large_running(turns) < turns->large_max);
}

/* When the client had its last turn; 0: none that is remembered. */
static uint64_t last_served(const struct turns *turns, uint64_t client)
{
	for (size_t i = 0; i < SERVED_KEPT; i++)
		if (turns->served[i].at && turns->served[i].client == client)
			return turns->served[i].at;
	return 0;
}

static void note_served(struct turns *turns, uint64_t client)
{
	struct served *oldest = &turns->served[0];

	for (size_t i = 0; i < SERVED_KEPT; i++) {
		struct served *served = &turns->served[i];

		if (served->at && served->client == client) {
			served->at = ++turns->given;
			return;
		}
		if (served->at < oldest->at)
			oldest = served;
	}
	*oldest = (struct served){ client, ++turns->given };
}

/* Whether the first goes before the second, which has waited longer. */
static bool goes_first(const struct turns *turns, const struct turn *a, const struct turn *b)
{
	uint32_t a_running = running_of(turns, a->client), b_running = running_of(turns, b->client);

	if (a_running != b_running)
		return a_running < b_running;
	return last_served(turns, a->client) < last_served(turns, b->client);
}

static void grant(struct turns *turns, struct turn *turn)
{
	append(&turns->running, turn);
	note_served(turns, turn->client);
	turn->granted = true;
}

/* Gives turns to those that wait, as many as there are. With the lock. */
static void serve_waiting(struct turns *turns)
{
	struct turn *best;

	do {
		bool behind = false; /* somebody who waits to be alone */

		best = NULL;
		for (struct turn *turn = turns->waiting.first; turn; turn = turn->next) {
			if (fits(turns, turn, behind) && (!best || goes_first(turns, turn, best)))
				best = turn;
			behind |= turn->size == TURNS_ALONE;
		}
		if (best) {
			take_out(&turns->waiting, best);
			grant(turns, best);
			pthread_cond_signal(&best->wake);
		}
	} while (best);
}

static bool is_set(const _Atomic bool *flag)
{
	return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

static int check(const struct turns_ask *ask, struct err *err)
{
	if (is_set(ask->cancelled) || is_set(ask->stopped))
		return err_set(err, ERR_CANCELLED, "query: cancelled");
	if (ask->deadline_at_ns && clock_monotonic_ns() >= ask->deadline_at_ns)
		return err_set(err, ERR_DEADLINE, "query: out of time while others were answered");
	return 0;
}

int turns_wait(const struct turns_ask *ask, pthread_mutex_t *lock, pthread_cond_t *wake,
	       const bool *is_done, struct err *err)
{
	int rc = 0;

	while (!*is_done && !rc) {
		int64_t until_ns = clock_monotonic_ns() + TURNS_LOOK_NS;
		struct timespec until = { .tv_sec = until_ns / CLOCK_NS_PER_S,
					  .tv_nsec = until_ns % CLOCK_NS_PER_S };

		pthread_cond_timedwait(wake, lock, &until);
		rc = *is_done ? 0 : check(ask, err);
	}
	return rc;
}

/* Whether there is room for one more. With the lock. */
static int check_room(const struct turns *turns, struct err *err)
{
	uint32_t others = turns->waiting.count + turns->joined;

	if (others < turns->waiting_max)
		return 0;
	return err_set(err, ERR_NO_MEMORY,
		       "query: %u others wait for their turn already; ask again in a second",
		       others);
}

static int wait_or_refuse(struct turns *turns, const struct turns_ask *ask, struct turn *turn,
			  struct err *err)
{
	int rc;

	if (ask->at_once)
		return err_set(err, ERR_BUSY, "query: others are answered now");
	rc = check_room(turns, err);
	if (rc)
		return rc;
	append(&turns->waiting, turn);
	rc = turns_wait(ask, &turns->lock, &turn->wake, &turn->granted, err);
	if (rc) {
		take_out(&turns->waiting, turn);
		serve_waiting(turns); /* it may have been in the way */
	}
	return rc;
}

void turns_wake_init(pthread_cond_t *wake)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(wake, &attributes);
	pthread_condattr_destroy(&attributes);
}

static struct turn *new_turn(const struct turns_ask *ask)
{
	struct turn *turn = mem_new(struct turn);

	turn->client = hash_bytes(ask->client.data, ask->client.len);
	turn->size = ask->size;
	turns_wake_init(&turn->wake);
	return turn;
}

static void free_turn(struct turn *turn)
{
	pthread_cond_destroy(&turn->wake);
	free(turn);
}

int turns_take(struct turns *turns, const struct turns_ask *ask, struct turn **ret, struct err *err)
{
	struct turn *turn;
	int rc = check(ask, err);

	if (rc)
		return rc;
	turn = new_turn(ask);
	pthread_mutex_lock(&turns->lock);
	if (fits(turns, turn, somebody_wants_all(turns)))
		grant(turns, turn);
	else
		rc = wait_or_refuse(turns, ask, turn, err);
	pthread_mutex_unlock(&turns->lock);
	if (rc)
		free_turn(turn);
	else
		*ret = turn;
	return rc;
}

void turns_give(struct turns *turns, struct turn *turn)
{
	if (!turn)
		return;
	pthread_mutex_lock(&turns->lock);
	take_out(&turns->running, turn);
	serve_waiting(turns);
	pthread_mutex_unlock(&turns->lock);
	free_turn(turn);
}

int turns_join(struct turns *turns, struct err *err)
{
	int rc;

	pthread_mutex_lock(&turns->lock);
	rc = check_room(turns, err);
	turns->joined += !rc;
	pthread_mutex_unlock(&turns->lock);
	return rc;
}

void turns_leave(struct turns *turns)
{
	pthread_mutex_lock(&turns->lock);
	turns->joined--;
	pthread_mutex_unlock(&turns->lock);
}

uint32_t turns_waiting(struct turns *turns)
{
	uint32_t count;

	pthread_mutex_lock(&turns->lock);
	count = turns->waiting.count + turns->joined;
	pthread_mutex_unlock(&turns->lock);
	return count;
}
