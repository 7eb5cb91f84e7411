/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape - fetches profiles from programs, as configured by --config-file: discoveries find
 * targets, rules select them, and each target is scraped at its own offset in each interval.
 *
 *   discovery threads -> found targets -> the scrape thread: relabels, keeps the list, starts what
 *   is due -> a thread per running scrape: GET, then `store`
 *
 * A running scrape waits for its target only: a slow, huge or malformed answer costs its own thread
 * and timeout. At most one scrape of a target runs at a time; bodies are bounded one by one, and
 * together by `memory`. Any thread may call.
 */
#ifndef FIRN_SERVER_SCRAPE_SCRAPE_H
#define FIRN_SERVER_SCRAPE_SCRAPE_H

#include "server/scrape/target.h"

struct budget;
struct scrape;

/* One profile that a target gave. `labels` are all that rules left; those with "__" are ours. */
struct scrape_taken {
	struct slice body;
	struct slice url;
	const struct label_list *labels;
	const struct field_pairs *external_labels;
	const struct scrape_profile *profile;
	bool is_delta;		   /* the target was asked for what happens in a time */
	int64_t from_ns, until_ns; /* wall clock; of the request */
};

/* Makes it durable. Any thread. */
typedef int scrape_store_f(void *context, const struct scrape_taken *taken, struct err *err);

struct scrape_options {
	const char *config_file; /* borrowed */
	scrape_store_f *store;
	void *store_context;
	struct budget *memory; /* pays for bodies; NULL: no limit */
};

int scrape_start(const struct scrape_options *options, struct scrape **ret, struct err *err);
void scrape_stop(struct scrape *scrape); /* accepts NULL; returns when no scrape runs */

/* Reads the file again. If it is invalid, nothing changes, and the error says which line. */
int scrape_reload(struct scrape *scrape, struct err *err);

/* For lists of them; called with a lock held, so these copy and return. */
struct scrape_visitor {
	void (*active)(void *context, const struct scrape_target *target);
	void (*dropped)(void *context, const struct scrape_job *job,
			const struct scrape_dropped *dropped);
	/* After each job's targets; more may be dropped than are told. */
	void (*job)(void *context, const struct scrape_job *job, size_t active, size_t dropped);
	void (*failure)(void *context, const struct scrape_job *job,
			const struct discovery_config *discovery, const struct err *err);
	void *context;
};
void scrape_visit(struct scrape *scrape, const struct scrape_visitor *visitor);

#endif
