/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/admission.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "net/server.h"

#define RUNNING_MIN 4u
#define SERVED_KEPT 128u /* clients and tenants whose last turn is remembered */
#define PLACES_SHARE 3u	 /* of the queue, that one tenant may have */
#define PLACES_SHARE_OF 4u

struct admission_seat {
	struct admission_seat *previous,
		*next; /* of those that wait, oldest first; or of those that run, or joined */
	uint64_t client, tenant; /* tenant 0: they are not told apart */
	const struct net_request *request;
	enum admission_size size;
	bool is_settled; /* granted, or: */
	bool is_evicted; /* another tenant got its place in the queue */
	struct lock_condition wake;
};

struct seat_list {
	struct admission_seat *first, *last;
	uint32_t count;
};

struct admission {
	struct lock lock; /* guards the rest */
	struct seat_list active, waiting, joined;
	uint32_t running_max, large_max;
	uint32_t waiting_max; /* of those that wait and those that joined */
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

static void append(struct seat_list *list, struct admission_seat *seat)
{
	seat->previous = list->last;
	seat->next = NULL;
	if (list->last)
		list->last->next = seat;
	else
		list->first = seat;
	list->last = seat;
	list->count++;
}

static void take_out(struct seat_list *list, struct admission_seat *seat)
{
	if (seat->previous)
		seat->previous->next = seat->next;
	else
		list->first = seat->next;
	if (seat->next)
		seat->next->previous = seat->previous;
	else
		list->last = seat->previous;
	list->count--;
}

static uint32_t running_of(const struct admission *admission, uint64_t client)
{
	uint32_t count = 0;

	for (const struct admission_seat *seat = admission->active.first; seat; seat = seat->next)
		count += seat->client == client;
	return count;
}

static uint32_t count_of_tenant(const struct seat_list *list, uint64_t tenant)
{
	uint32_t count = 0;

	for (const struct admission_seat *seat = list->first; seat; seat = seat->next)
		count += seat->tenant == tenant;
	return count;
}

/* One seat is left to others, so that they need not wait for a long query to end. */
static bool has_its_seats(const struct admission *admission, uint64_t tenant)
{
	return tenant && admission->running_max > 1 &&
	       count_of_tenant(&admission->active, tenant) >= admission->running_max - 1;
}

static bool is_large(const struct admission_seat *seat)
{
	return seat->size > ADMISSION_MIDDLE ||
	       (seat->size == ADMISSION_MIDDLE && net_request_others_read(seat->request));
}

static uint32_t large_running(const struct admission *admission)
{
	uint32_t count = 0;

	for (const struct admission_seat *seat = admission->active.first; seat; seat = seat->next)
		count += is_large(seat);
	return count;
}

static bool somebody_wants_all(const struct admission *admission)
{
	for (const struct admission_seat *seat = admission->waiting.first; seat; seat = seat->next)
		if (seat->size == ADMISSION_ALONE)
			return true;
	return false;
}

/* `behind`: somebody before it waits to be alone. */
static bool fits(const struct admission *admission, const struct admission_seat *seat, bool behind)
{
	const struct admission_seat *active = admission->active.first;

	if (seat->size == ADMISSION_ALONE)
		return !active;
	if (behind || (active && active->size == ADMISSION_ALONE) ||
	    has_its_seats(admission, seat->tenant))
		return false;
	return admission->active.count < admission->running_max &&
	       (!is_large(seat) || large_running(admission) < admission->large_max);
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

static bool tenant_goes_first(const struct admission *admission, uint64_t a, uint64_t b)
{
	uint32_t a_running = count_of_tenant(&admission->active, a),
		 b_running = count_of_tenant(&admission->active, b);

	if (a_running != b_running)
		return a_running < b_running;
	return last_served(admission, a) < last_served(admission, b);
}

/* True if the first goes before the second, which has waited longer. */
static bool goes_first(const struct admission *admission, const struct admission_seat *a,
		       const struct admission_seat *b)
{
	uint32_t a_running = running_of(admission, a->client),
		 b_running = running_of(admission, b->client);

	if (a->tenant != b->tenant)
		return tenant_goes_first(admission, a->tenant, b->tenant);
	if (a_running != b_running)
		return a_running < b_running;
	return last_served(admission, a->client) < last_served(admission, b->client);
}

static void grant(struct admission *admission, struct admission_seat *seat)
{
	append(&admission->active, seat);
	note_served(admission, seat->client);
	if (seat->tenant)
		note_served(admission, seat->tenant);
	seat->is_settled = true;
}

/* Gives turns to those that wait, as many as there are. */
static void serve_waiting(struct admission *admission)
{
	struct admission_seat *best;

	lock_assert_held(&admission->lock);
	do {
		bool behind = false; /* somebody who waits to be alone */

		best = NULL;
		for (struct admission_seat *seat = admission->waiting.first; seat;
		     seat = seat->next) {
			if (fits(admission, seat, behind) &&
			    (!best || goes_first(admission, seat, best)))
				best = seat;
			behind |= seat->size == ADMISSION_ALONE;
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

static uint32_t places_of(const struct admission *admission, uint64_t tenant)
{
	return count_of_tenant(&admission->waiting, tenant) +
	       count_of_tenant(&admission->joined, tenant);
}

/* The newest that waits, of the tenant that has most places; NULL: nobody has more than `than`. */
static struct admission_seat *find_victim(const struct admission *admission, uint32_t than)
{
	struct admission_seat *found = NULL;

	for (struct admission_seat *seat = admission->waiting.last; seat; seat = seat->previous) {
		uint32_t places = places_of(admission, seat->tenant);

		if (places > than) {
			found = seat;
			than = places;
		}
	}
	return found;
}

static bool make_room(struct admission *admission, uint64_t tenant)
{
	struct admission_seat *victim =
		tenant ? find_victim(admission, places_of(admission, tenant) + 1) : NULL;

	if (!victim)
		return false;
	assert(victim->tenant != tenant && !victim->is_settled);
	take_out(&admission->waiting, victim);
	victim->is_settled = victim->is_evicted = true;
	lock_signal(&victim->wake);
	return true;
}

static int refuse(uint32_t others, struct err *err)
{
	return err_set(err, ERR_NO_MEMORY,
		       "query: %u others wait for their turn already; ask again in a second",
		       others);
}

/* Whether there is room for one more, which may be made. */
static int check_room(struct admission *admission, uint64_t tenant, struct err *err)
{
	uint32_t others = admission->waiting.count + admission->joined.count;
	uint32_t own = tenant ? places_of(admission, tenant) : 0;

	lock_assert_held(&admission->lock);
	if (own && own >= admission->waiting_max / PLACES_SHARE_OF * PLACES_SHARE)
		return refuse(own, err);
	if (others < admission->waiting_max || make_room(admission, tenant))
		return 0;
	return refuse(others, err);
}

static int wait_or_refuse(struct admission *admission, const struct admission_ask *ask,
			  struct admission_seat *seat, struct err *err)
{
	int rc;

	if (ask->at_once)
		return err_set(err, ERR_BUSY, "query: others are answered now");
	rc = check_room(admission, seat->tenant, err);
	if (rc)
		return rc;
	append(&admission->waiting, seat);
	rc = admission_wait(ask, &admission->lock, &seat->wake, &seat->is_settled, err);
	if (seat->is_evicted)
		return refuse(admission->waiting.count + admission->joined.count, err);
	if (rc) {
		take_out(&admission->waiting, seat);
		serve_waiting(admission); /* it may have been in the way */
	}
	return rc;
}

static struct admission_seat *new_seat(const struct admission_ask *ask)
{
	struct admission_seat *seat = mem_new(struct admission_seat);

	seat->client = hash_bytes(ask->client.data, ask->client.len);
	if (ask->has_tenant)
		seat->tenant = hash_bytes(ask->tenant.data, ask->tenant.len) | 1;
	seat->request = ask->request;
	seat->size = ask->size;
	lock_condition_init(&seat->wake);
	return seat;
}

static void free_seat(struct admission_seat *seat)
{
	lock_condition_free(&seat->wake);
	free(seat);
}

int admission_take(struct admission *admission, const struct admission_ask *ask,
		   struct admission_seat **ret, struct err *err)
{
	struct admission_seat *seat;
	int rc = check(ask, err);

	if (rc)
		return rc;
	seat = new_seat(ask);
	lock_take(&admission->lock);
	if (fits(admission, seat, somebody_wants_all(admission)))
		grant(admission, seat);
	else
		rc = wait_or_refuse(admission, ask, seat, err);
	lock_give(&admission->lock);
	if (rc)
		free_seat(seat);
	else
		*ret = seat;
	return rc;
}

void admission_give(struct admission *admission, struct admission_seat *seat)
{
	if (!seat)
		return;
	lock_take(&admission->lock);
	take_out(&admission->active, seat);
	serve_waiting(admission);
	lock_give(&admission->lock);
	free_seat(seat);
}

int admission_join(struct admission *admission, const struct admission_ask *ask,
		   struct admission_seat **ret, struct err *err)
{
	struct admission_seat *place = new_seat(ask);
	int rc;

	lock_take(&admission->lock);
	rc = check_room(admission, place->tenant, err);
	if (!rc)
		append(&admission->joined, place);
	lock_give(&admission->lock);
	if (rc)
		free_seat(place);
	else
		*ret = place;
	return rc;
}

void admission_leave(struct admission *admission, struct admission_seat *place)
{
	lock_take(&admission->lock);
	take_out(&admission->joined, place);
	lock_give(&admission->lock);
	free_seat(place);
}

uint32_t admission_waiting(struct admission *admission)
{
	uint32_t count;

	lock_take(&admission->lock);
	count = admission->waiting.count + admission->joined.count;
	lock_give(&admission->lock);
	return count;
}
