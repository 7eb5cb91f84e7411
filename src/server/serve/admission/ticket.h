/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticket - the way of one query from its request to its answer: who lists it, what it waits for,
 * and who else gets what it computes.
 *
 *     NEW --list--> LISTED --take, wait--> SEATED --answer--> ANSWERED --end--> ENDED
 *
 *   NEW       nobody knows of it
 *   LISTED    it is among the active queries, and can be stopped there
 *   SEATED    it may compute: it has one of admission's few seats. leave: back to LISTED
 *   ANSWERED  its answer is there: computed, kept (find), or an equal query's (lead_or_follow)
 *   ENDED     nothing is held any more; from every state
 *
 * A query in LISTED holds no snapshot while it waits: that would hold what others could give back.
 * With a key, equal queries that wait are computed once (coalesce.h): the first one leads, and the
 * answer is theirs too when it goes to ANSWERED, and kept (answer_cache.h). Whoever leads and fails
 * lets those that follow ask again.
 *
 * Owned by the thread that answers the request. Every other step is a fault of the program and ends
 * it.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_TICKET_H
#define FIRN_SERVER_SERVE_ADMISSION_TICKET_H

#include "server/serve/admission/active_queries.h"
#include "server/serve/admission/admission.h"
#include "server/serve/admission/answer_cache.h"
#include "server/serve/admission/coalesce.h"

enum ticket_state { TICKET_NEW, TICKET_LISTED, TICKET_SEATED, TICKET_ANSWERED, TICKET_ENDED };

/* Parts of the server; borrowed, as long as there are tickets. */
struct ticket_desk {
	struct active_queries *active;
	struct admission *admission;
	struct coalesce *coalesce;
	struct answer_cache *cache;
};

struct ticket {
	enum ticket_state state;
	struct ticket_desk desk;
	struct admission_ask ask; /* its client, deadline and client's leaving */
	struct slice key;	  /* what makes its answer; "": it is shared with nobody */
	struct active_query *active;
	struct admission_seat *seat;
	struct coalesce_lead *lead; /* others may wait for the answer */
};

/* Of `ask` only client, deadline_at_ns and cancelled count; all is borrowed until ticket_end. */
void ticket_init(struct ticket *ticket, const struct ticket_desk *desk,
		 const struct admission_ask *ask);

/* NEW -> LISTED. */
void ticket_list(struct ticket *ticket, const struct active_query_what *what);

/* LISTED -> SEATED at once, or ERR_BUSY. */
MUST_USE int ticket_take(struct ticket *ticket, enum admission_size size, struct err *err);

/* LISTED -> SEATED after a wait. ERR_NO_MEMORY, ERR_CANCELLED, ERR_DEADLINE: LISTED still. */
MUST_USE int ticket_wait(struct ticket *ticket, enum admission_size size, struct err *err);

/*
 * The same; but with a key, while an equal query waits, LISTED -> ANSWERED: `response`, as preset,
 * has that one's answer.
 */
MUST_USE int ticket_lead_or_follow(struct ticket *ticket, enum admission_size size,
				   struct net_response *response, struct err *err);

/* SEATED -> LISTED: to wait for a seat with nobody beside. */
void ticket_leave(struct ticket *ticket);

/*
 * With a key: the answer that is kept of an equal query and this version of the data -> ANSWERED,
 * true. From LISTED or SEATED; who followed gets it too.
 */
bool ticket_find(struct ticket *ticket, uint64_t version, struct net_response *response);

/*
 * SEATED -> ANSWERED with `rc` and, when that is 0, `response`. A `version` says what the answer is
 * made of; 0: it is not kept. Does nothing without a seat: the query failed before.
 */
void ticket_answer(struct ticket *ticket, int rc, uint64_t version,
		   const struct net_response *response);

void ticket_end(struct ticket *ticket);

static inline bool ticket_is_seated(const struct ticket *ticket)
{
	return ticket->state == TICKET_SEATED;
}

#endif
