/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/ticket.h"

#include <assert.h>

#define TO(state) (1u << (state))

static void go(struct ticket *ticket, enum ticket_state to)
{
	static const unsigned ways[] = {
		[TICKET_NEW] = TO(TICKET_LISTED) | TO(TICKET_ENDED),
		[TICKET_LISTED] = TO(TICKET_SEATED) | TO(TICKET_ANSWERED) | TO(TICKET_ENDED),
		[TICKET_SEATED] = TO(TICKET_LISTED) | TO(TICKET_ANSWERED) | TO(TICKET_ENDED),
		[TICKET_ANSWERED] = TO(TICKET_ENDED),
		[TICKET_ENDED] = 0,
	};

	assert(ways[ticket->state] & TO(to));
	ticket->state = to;
	assert((to == TICKET_NEW || to == TICKET_ENDED) == !ticket->active);
	assert(to != TICKET_SEATED || ticket->seat);
	assert(to != TICKET_LISTED || !ticket->seat);
}

void ticket_init(struct ticket *ticket, const struct ticket_desk *desk,
		 const struct admission_ask *ask)
{
	*ticket = (struct ticket){ .desk = *desk, .ask = *ask };
}

void ticket_list(struct ticket *ticket, const struct active_query_what *what)
{
	ticket->active = active_queries_add(ticket->desk.active, what);
	ticket->ask.stopped = active_queries_stopped(ticket->active);
	go(ticket, TICKET_LISTED);
}

static int take_seat(struct ticket *ticket, enum admission_size size, bool at_once, struct err *err)
{
	int rc;

	assert(ticket->state == TICKET_LISTED);
	ticket->ask.size = size;
	ticket->ask.at_once = at_once;
	rc = admission_take(ticket->desk.admission, &ticket->ask, &ticket->seat, err);
	if (!rc)
		go(ticket, TICKET_SEATED);
	return rc;
}

int ticket_take(struct ticket *ticket, enum admission_size size, struct err *err)
{
	return take_seat(ticket, size, true, err);
}

int ticket_wait(struct ticket *ticket, enum admission_size size, struct err *err)
{
	return take_seat(ticket, size, false, err);
}

int ticket_lead_or_follow(struct ticket *ticket, enum admission_size size,
			  struct net_response *response, struct err *err)
{
	int rc = 0;

	assert(ticket->state == TICKET_LISTED && !ticket->lead);
	if (ticket->key.len)
		rc = coalesce_enter(ticket->desk.coalesce, ticket->key, &ticket->ask, response,
				    &ticket->lead, err);
	if (!rc && ticket->key.len && !ticket->lead)
		go(ticket, TICKET_ANSWERED);
	else if (!rc)
		rc = ticket_wait(ticket, size, err);
	if (!rc && ticket->lead)
		coalesce_close(ticket->desk.coalesce, ticket->lead);
	return rc;
}

/* What another client of the same query would get as well. */
static bool is_of_query(int rc)
{
	return rc != -ERR_CANCELLED && rc != -ERR_DEADLINE && rc != -ERR_NO_MEMORY &&
	       rc != -ERR_BUSY;
}

static void finish_lead(struct ticket *ticket, const struct net_response *response)
{
	if (ticket->lead)
		coalesce_finish(ticket->desk.coalesce, ticket->lead, response);
	ticket->lead = NULL;
}

bool ticket_find(struct ticket *ticket, uint64_t version, struct net_response *response)
{
	if (!ticket->key.len || !version ||
	    !answer_cache_find(ticket->desk.cache, ticket->key, version, clock_monotonic_ns(),
			       response))
		return false;
	finish_lead(ticket, response);
	go(ticket, TICKET_ANSWERED);
	return true;
}

void ticket_answer(struct ticket *ticket, int rc, uint64_t version,
		   const struct net_response *response)
{
	if (ticket->state != TICKET_SEATED)
		return;
	finish_lead(ticket, is_of_query(rc) ? response : NULL);
	if (!rc && ticket->key.len && version && response->status == 200)
		answer_cache_put(ticket->desk.cache, ticket->key, version, clock_monotonic_ns(),
				 response);
	go(ticket, TICKET_ANSWERED);
}

static void give_seat(struct ticket *ticket)
{
	admission_give(ticket->desk.admission, ticket->seat);
	ticket->seat = NULL;
}

void ticket_leave(struct ticket *ticket)
{
	assert(ticket->state == TICKET_SEATED);
	give_seat(ticket);
	go(ticket, TICKET_LISTED);
}

void ticket_end(struct ticket *ticket)
{
	finish_lead(ticket, NULL);
	give_seat(ticket);
	active_queries_remove(ticket->desk.active, ticket->active);
	ticket->active = NULL;
	go(ticket, TICKET_ENDED);
}
