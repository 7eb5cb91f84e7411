/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/admission.h"

#include <sched.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

#define RUNNING_MIN 4u
#define SERVED_KEPT 64u /* clients whose last turn is remembered */

struct ticket {
	struct ticket *previous, *next; /* of those that wait, oldest first; or of those that run */
	uint64_t client;
	enum admission_size size;
	bool granted;
	struct lock_condition wake;
};

struct ticket_list {
	struct ticket *first, *last;
	uint32_t count;
};

struct admission {
	struct lock lock; /* guards the rest */
	struct ticket_list active, waiting;
	uint32_t running_max, waiting_max, large_max;
	uint32_t joined; /* of waiting_max as well */
	struct served {
		uint64_t client, at; /* in turns given */
	} served[SERVED_KEPT];
	uint64_t given;
};

static uint32_t admission_by_cpus(void)
{
	cpu_set_t set;
	uint32_t count = RUNNING_MIN;

	if (!sched_getaffinity(0, sizeof(set), &set) && (uint32_t)CPU_COUNT(&set) > count)
		count = (uint32_t)CPU_COUNT(&set);
	return count < ADMISSION_RUNNING_MAX ? count : ADMISSION_RUNNING_MAX;
}

struct admission *admission_new(uint32_t running_max, uint32_t waiting_max)
{
	struct admission *admission = mem_new(struct admission);

	lock_init(&admission->lock, "admission", LOCK_SERVE + 1);
	admission->running_max = running_max ? running_max : admission_by_cpus();
	admission->large_max = admission->running_max > 1 ? admission->running_max / 2 : 1;
	admission->waiting_max = waiting_max;
	return admission;
}

void admission_free(struct admission *admission)
{
	if (!admission)
		return;
	lock_free(&admission->lock);
	free(admission);
}

static void append(struct ticket_list *list, struct ticket *ticket)
{
	ticket->previous = list->last;
	ticket->next = NULL;
	if (list->last)
		list->last->next = ticket;
	else
		list->first = ticket;
	list->last = ticket;
	list->count++;
}

static void take_out(struct ticket_list *list, struct ticket *ticket)
{
	if (ticket->previous)
		ticket->previous->next = ticket->next;
	else
		list->first = ticket->next;
	if (ticket->next)
		ticket->next->previous = ticket->previous;
	else
		list->last = ticket->previous;
	list->count--;
}

static uint32_t running_of(const struct admission *admission, uint64_t client)
{
	uint32_t count = 0;

	for (const struct ticket *ticket = admission->active.first; ticket; ticket = ticket->next)
		count += ticket->client == client;
	return count;
}

static uint32_t large_running(const struct admission *admission)
{
	uint32_t count = 0;

	for (const struct ticket *ticket = admission->active.first; ticket; ticket = ticket->next)
		count += ticket->size != ADMISSION_SMALL;
	return count;
}

static bool somebody_wants_all(const struct admission *admission)
{
	for (const struct ticket *ticket = admission->waiting.first; ticket; ticket = ticket->next)
		if (ticket->size == ADMISSION_ALONE)
			return true;
	return false;
}

/* `behind`: somebody before it waits to be alone. */
static bool fits(const struct admission *admission, const struct ticket *ticket, bool behind)
{
	const struct ticket *active = admission->active.first;

	if (ticket->size == ADMISSION_ALONE)
		return !active;
	if (behind || (active && active->size == ADMISSION_ALONE))
		return false;
	return admission->active.count < admission->running_max &&
	       (ticket->size == ADMISSION_SMALL || large_running(admission) < admission->large_max);
}

/* When the client had its last turn; 0: none that is remembered. */
static uint64_t last_served(const struct admission *admission, uint64_t client)
{
	for (size_t i = 0; i < SERVED_KEPT; i++)
		if (admission->served[i].at && admission->served[i].client == client)
			return admission->served[i].at;
	return 0;
}

static void note_served(struct admission *admission, uint64_t client)
{
	struct served *oldest = &admission->served[0];

	for (size_t i = 0; i < SERVED_KEPT; i++) {
		struct served *served = &admission->served[i];

		if (served->at && served->client == client) {
			served->at = ++admission->given;
			return;
		}
		if (served->at < oldest->at)
			oldest = served;
	}
	*oldest = (struct served){ client, ++admission->given };
}

/* True if the first goes before the second, which has waited longer. */
static bool goes_first(const struct admission *admission, const struct ticket *a,
		       const struct ticket *b)
{
	uint32_t a_running = running_of(admission, a->client),
		 b_running = running_of(admission, b->client);

	if (a_running != b_running)
		return a_running < b_running;
	return last_served(admission, a->client) < last_served(admission, b->client);
}

static void grant(struct admission *admission, struct ticket *ticket)
{
	append(&admission->active, ticket);
	note_served(admission, ticket->client);
	ticket->granted = true;
}

/* Gives turns to those that wait, as many as there are. */
static void serve_waiting(struct admission *admission)
{
	struct ticket *best;

	lock_assert_held(&admission->lock);
	do {
		bool behind = false; /* somebody who waits to be alone */

		best = NULL;
		for (struct ticket *ticket = admission->waiting.first; ticket;
		     ticket = ticket->next) {
			if (fits(admission, ticket, behind) &&
			    (!best || goes_first(admission, ticket, best)))
				best = ticket;
			behind |= ticket->size == ADMISSION_ALONE;
		}
		if (best) {
			take_out(&admission->waiting, best);
			grant(admission, best);
			lock_signal(&best->wake);
		}
	} while (best);
}

static bool is_set(const _Atomic bool *flag)
{
	return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

static int check(const struct admission_ask *ask, struct err *err)
{
	if (is_set(ask->cancelled) || is_set(ask->stopped))
		return err_set(err, ERR_CANCELLED, "query: cancelled");
	if (ask->deadline_at_ns && clock_monotonic_ns() >= ask->deadline_at_ns)
		return err_set(err, ERR_DEADLINE, "query: out of time while others were answered");
	return 0;
}

int admission_wait(const struct admission_ask *ask, struct lock *lock, struct lock_condition *wake,
		   const bool *is_done, struct err *err)
{
	int rc = 0;

	while (!*is_done && !rc) {
		lock_wait_until(wake, lock, clock_monotonic_ns() + ADMISSION_LOOK_NS);
		rc = *is_done ? 0 : check(ask, err);
	}
	return rc;
}

/* Whether there is room for one more. */
static int check_room(const struct admission *admission, struct err *err)
{
	uint32_t others = admission->waiting.count + admission->joined;

	lock_assert_held(&admission->lock);
	if (others < admission->waiting_max)
		return 0;
	return err_set(err, ERR_NO_MEMORY,
		       "query: %u others wait for their turn already; ask again in a second",
		       others);
}

static int wait_or_refuse(struct admission *admission, const struct admission_ask *ask,
			  struct ticket *ticket, struct err *err)
{
	int rc;

	if (ask->at_once)
		return err_set(err, ERR_BUSY, "query: others are answered now");
	rc = check_room(admission, err);
	if (rc)
		return rc;
	append(&admission->waiting, ticket);
	rc = admission_wait(ask, &admission->lock, &ticket->wake, &ticket->granted, err);
	if (rc) {
		take_out(&admission->waiting, ticket);
		serve_waiting(admission); /* it may have been in the way */
	}
	return rc;
}

static struct ticket *new_turn(const struct admission_ask *ask)
{
	struct ticket *ticket = mem_new(struct ticket);

	ticket->client = hash_bytes(ask->client.data, ask->client.len);
	ticket->size = ask->size;
	lock_condition_init(&ticket->wake);
	return ticket;
}

static void free_turn(struct ticket *ticket)
{
	lock_condition_free(&ticket->wake);
	free(ticket);
}

int admission_take(struct admission *admission, const struct admission_ask *ask,
		   struct ticket **ret, struct err *err)
{
	struct ticket *ticket;
	int rc = check(ask, err);

	if (rc)
		return rc;
	ticket = new_turn(ask);
	lock_take(&admission->lock);
	if (fits(admission, ticket, somebody_wants_all(admission)))
		grant(admission, ticket);
	else
		rc = wait_or_refuse(admission, ask, ticket, err);
	lock_give(&admission->lock);
	if (rc)
		free_turn(ticket);
	else
		*ret = ticket;
	return rc;
}

void admission_give(struct admission *admission, struct ticket *ticket)
{
	if (!ticket)
		return;
	lock_take(&admission->lock);
	take_out(&admission->active, ticket);
	serve_waiting(admission);
	lock_give(&admission->lock);
	free_turn(ticket);
}

int admission_join(struct admission *admission, struct err *err)
{
	int rc;

	lock_take(&admission->lock);
	rc = check_room(admission, err);
	admission->joined += !rc;
	lock_give(&admission->lock);
	return rc;
}

void admission_leave(struct admission *admission)
{
	lock_take(&admission->lock);
	admission->joined--;
	lock_give(&admission->lock);
}

uint32_t admission_waiting(struct admission *admission)
{
	uint32_t count;

	lock_take(&admission->lock);
	count = admission->waiting.count + admission->joined;
	lock_give(&admission->lock);
	return count;
}
