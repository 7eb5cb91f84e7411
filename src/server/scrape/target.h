/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target - one profile of one scraped address, with the results so far. Its labels and URL do not
 * change; the lock of scrape.c guards the rest.
 */
#ifndef FIRN_SERVER_SCRAPE_TARGET_H
#define FIRN_SERVER_SCRAPE_TARGET_H

#include "server/scrape/target_labels.h"

/* Labels in one piece of memory, by name. */
struct label_list {
	struct rule_label *labels;
	size_t count;
};

struct label_list label_list_of(const struct rule_labels *set);
void label_list_free(struct label_list *list);
struct slice label_list_get(const struct label_list *list, const char *name);

/* Where a target comes from. The labels before the rules are made from it on demand. */
struct scrape_origin {
	struct found *found; /* shared */
	const struct found_target *target;
	const struct scrape_profile *profile;
};

/*
 * For an answer that has `told_bytes` so far: nothing more is told from SCRAPE_TOLD_BYTES_MAX on.
 * To be freed.
 */
#define SCRAPE_TOLD_BYTES_MAX ((size_t)32 << 20)
struct label_list scrape_origin_labels(const struct scrape_origin *origin,
				       const struct scrape_job *job, size_t told_bytes);

enum scrape_health { SCRAPE_UNKNOWN, SCRAPE_UP, SCRAPE_DOWN };

struct scrape_target {
	void *plan; /* that its job belongs to */
	const struct scrape_job *job;
	size_t job_index;
	struct scrape_origin origin;
	struct label_list after;
	size_t paid_bytes; /* of discovery_memory */
	char *url;
	uint64_t key; /* of what it is: equal ones are the same target */
	int64_t interval_ns, timeout_ns;
	unsigned refs;
	bool in_flight;
	int64_t next_at_ns; /* monotonic */
	enum scrape_health health;
	int64_t last_at_ns; /* wall clock; 0: never */
	int64_t last_duration_ns;
	char *error; /* of the last scrape; NULL: none */
};

struct scrape_dropped {
	struct scrape_origin origin;
	char *reason;
};

/*
 * Takes what it needs out of `labels`, which were not dropped, and shares what was found. NULL:
 * discovery_memory has none left for it.
 */
struct scrape_target *target_new(const struct scrape_job *job, const struct scrape_origin *origin,
				 const struct target_labels *labels);
/* Moves the origin of `from`, which is about to be freed, to `target`, of the same job. */
void target_move_origin(struct scrape_target *target, struct scrape_target *from);
void target_free(struct scrape_target *target);

#endif
