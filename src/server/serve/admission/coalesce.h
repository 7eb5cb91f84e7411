/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coalesce - equal queries that wait for admission at the same time are computed once.
 *
 * The first query leads and waits for its seat (admission.h). An equal query that arrives before
 * the seat does joins it and waits for the answer. Nobody joins after that, because the leader
 * then takes its snapshot: a client's answer must hold everything that was written before it asked.
 * If the leader ends without an answer for all (its client left, its deadline passed), those that
 * joined ask again, and the first of them leads.
 *
 * Copies of one answer have COALESCE_BYTES_MAX together; a client that gets no copy asks again. A
 * query that joins counts as one that waits (admission_join), and gives up as those do.
 *
 * Thread-safe. A lead belongs to the thread that got it; a response to its caller, for the call.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_COALESCE_H
#define FIRN_SERVER_SERVE_ADMISSION_COALESCE_H

#include "net/server.h"
#include "server/serve/admission/admission.h"

#define COALESCE_BYTES_MAX ((size_t)32 << 20)
#define COALESCE_PARAMETERS_MAX 64

struct coalesce;
struct coalesce_lead;

struct coalesce *coalesce_new(struct admission *admission); /* borrowed */
void coalesce_free(struct coalesce *coalesce); /* accepts NULL; nobody leads or has joined */

/*
 * Appends the key of a query: the tenant, `times` (any bytes) in place of the parameters id, from,
 * to and at, and the other parameters, sorted by name. False: there is no key, and the query is
 * shared with nobody.
 */
bool coalesce_key(const struct net_request *request, struct slice tenant, struct slice times,
		  struct strbuf *ret);

/*
 * Either *ret leads, and ends with coalesce_finish; or it is NULL, and `response`, as preset, has
 * another's answer. ERR_NO_MEMORY, ERR_CANCELLED, ERR_DEADLINE. Of `ask` only the last three count.
 */
int coalesce_enter(struct coalesce *coalesce, struct slice key, const struct admission_ask *ask,
		   struct net_response *response, struct coalesce_lead **ret, struct err *err);
/* The leader has its seat: nobody joins from here on. */
void coalesce_close(struct coalesce *coalesce, struct coalesce_lead *lead);
/* The answer for all that joined, or NULL: they ask again. */
void coalesce_finish(struct coalesce *coalesce, struct coalesce_lead *lead,
		     const struct net_response *response);

#endif
