/* SPDX-License-Identifier: Apache-2.0 */
/*
 * running - the questions that are being answered: who asked what, how far it is, and a way to stop
 * it. Thread-safe. An entry belongs to who added it; what it tells to others is copied under the
 * lock.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_ACTIVE_QUERIES_H
#define FIRN_SERVER_SERVE_ADMISSION_ACTIVE_QUERIES_H

#include "base/slice.h"
#include "base/strbuf.h"
#include "server/query/stats.h"

#define RUNNING_ID_BYTES_MAX 64

struct running;
struct running_entry;

struct running_what {
	struct slice id; /* at most RUNNING_ID_BYTES_MAX; empty: one is made up */
	struct slice tenant, path, query, by;
	int64_t from_ns, to_ns;
};

struct running *running_new(void);
void running_free(struct running *running); /* accepts NULL; no entry may be left */

/* Copies what it is given. */
struct running_entry *running_add(struct running *running, const struct running_what *what);
void running_remove(struct running *running, struct running_entry *entry); /* accepts NULL */

const _Atomic bool *running_stopped(const struct running_entry *entry);
struct query_progress *running_progress(struct running_entry *entry);

/* Tells the tenant's questions of that id to stop; returns how many there were. */
size_t running_stop(struct running *running, struct slice tenant, struct slice id);

/* Visits the tenant's questions, oldest first, under the lock: the visitor must not call back. */
struct running_state {
	struct running_what what; /* valid during the visit */
	int64_t started_at_ns;	  /* wall clock */
	int64_t took_ns;
	uint64_t blocks_done, blocks_all, bytes_done, bytes_all;
	bool is_stopped;
};
typedef void running_visit_f(void *context, const struct running_state *state);
void running_each(struct running *running, struct slice tenant, running_visit_f *visit,
		  void *context);

#endif
