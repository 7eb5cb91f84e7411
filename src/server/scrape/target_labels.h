/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_labels - turns a discovered target into a scraped one, as Prometheus does: adds the job's
 * labels, applies its rules, and checks the result.
 */
#ifndef FIRN_SERVER_SCRAPE_TARGET_LABELS_H
#define FIRN_SERVER_SCRAPE_TARGET_LABELS_H

#include "config/scrape_config.h"
#include "server/scrape/found.h"

#define TARGET_LABELS_REASON_BYTES 256

struct target_labels {
	struct rule_labels before, after; /* sorted; `after` holds nothing when it is dropped */
	char reason[TARGET_LABELS_REASON_BYTES]; /* why it is dropped; "": it is scraped */
	int64_t interval_ns, timeout_ns;
};

/* Those before the rules, sorted; to be freed. */
void target_labels_discovered(const struct scrape_job *job, const struct scrape_profile *profile,
			      const struct found_target *target, struct rule_labels *ret);

/* One profile of one target. Free with target_labels_free. */
void target_labels_make(const struct scrape_job *job, const struct scrape_profile *profile,
			const struct found_target *target, struct target_labels *ret);
void target_labels_free(struct target_labels *labels);

/* "http://HOST:PORT/PATH?seconds=10" of what is left */
void target_labels_url(const struct rule_labels *after, const struct scrape_job *job,
		       struct strbuf *out);

/* True if the label says something of the target, and not of how it is asked. */
static inline bool target_labels_is_public(struct slice name)
{
	return !slice_starts_with(name, SLICE_LITERAL("__"));
}

#endif
