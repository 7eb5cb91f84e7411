/* SPDX-License-Identifier: Apache-2.0 */
/*
 * active_queries - the queries that run now: who asked what, how far each is, and a way to stop it.
 *
 * Thread-safe. An entry belongs to the thread that added it; texts are copied under the lock.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_ACTIVE_QUERIES_H
#define FIRN_SERVER_SERVE_ADMISSION_ACTIVE_QUERIES_H

#include "base/slice.h"
#include "base/strbuf.h"
#include "server/query/stats.h"

#define ACTIVE_QUERY_ID_BYTES_MAX 64

struct active_queries;
struct active_query;

struct active_query_what {
	struct slice id; /* at most ACTIVE_QUERY_ID_BYTES_MAX; empty: one is made up */
	struct slice tenant, path, query, by;
	int64_t from_ns, to_ns;
};

struct active_queries *active_queries_new(void);
void active_queries_free(struct active_queries *active); /* accepts NULL; no entry may be left */

/* Copies what it is given. */
struct active_query *active_queries_add(struct active_queries *active,
					const struct active_query_what *what);
void active_queries_remove(struct active_queries *active,
			   struct active_query *entry); /* accepts NULL */

const _Atomic bool *active_queries_stopped(const struct active_query *entry);
struct query_progress *active_queries_progress(struct active_query *entry);

/* Tells the tenant's queries of that id to stop; returns how many there were. */
size_t active_queries_stop(struct active_queries *active, struct slice tenant, struct slice id);

/* Visits the tenant's queries, oldest first, under the lock: the visitor must not call back. */
struct active_query_state {
	struct active_query_what what; /* valid during the visit */
	int64_t started_at_ns;	       /* wall clock */
	int64_t took_ns;
	uint64_t blocks_done, blocks_all, bytes_done, bytes_all;
	bool is_stopped;
};
typedef void active_queries_visit_f(void *context, const struct active_query_state *state);
void active_queries_each(struct active_queries *active, struct slice tenant,
			 active_queries_visit_f *visit, void *context);

#endif
