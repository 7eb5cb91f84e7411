/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets - who has sent profiles since the start: when, how much, with which errors.
 *
 * A sender is its tenant, address (without port), user agent and, where its series have one, label
 * node. At most TARGETS_MAX; those that have been silent for longest go first. Thread-safe.
 */
#ifndef FIRN_SERVER_SERVE_API_TARGETS_H
#define FIRN_SERVER_SERVE_API_TARGETS_H

#include "base/err.h"
#include "base/slice.h"
#include "server/serve/tenant.h"

#define TARGETS_MAX 10000
#define TARGETS_TEXT_BYTES 128 /* of each text but the tenant; longer ones are cut */

struct targets;

struct targets *targets_new(void);
void targets_free(struct targets *targets); /* accepts NULL */

/* One request to write. */
struct targets_write {
	struct slice tenant;
	struct slice peer;   /* "10.0.0.1:5000" */
	struct slice sender; /* user agent */
	struct slice node;   /* empty: none of its labels says */
	uint64_t bytes, reports, refused;
	uint64_t samples; /* of types that count samples */
	uint64_t lost; /* since the sender's start, as it says itself; 0: none, or nothing said */
	const struct err *err; /* it was answered with; NULL: none */
};
void targets_note(struct targets *targets, const struct targets_write *write);

struct target {
	char tenant[TENANT_BYTES_MAX + 1]; /* whole: a part of it is another's */
	char peer[TARGETS_TEXT_BYTES], sender[TARGETS_TEXT_BYTES], node[TARGETS_TEXT_BYTES];
	int64_t first_at_ns, last_at_ns, error_at_ns; /* wall clock */
	int64_t interval_ns;			      /* between requests, of late; 0 = not known */
	uint64_t requests, bytes, reports, refused, errors, samples, lost;
	double samples_per_s;	       /* of late; 0 = not known */
	int64_t lost_at_ns;	       /* when more of them were heard of last; 0 = never */
	char error[ERR_MESSAGE_BYTES]; /* the last one */
};

/* Copies of the tenant's, the most recent first; the caller frees the array. */
struct target *targets_list(struct targets *targets, struct slice tenant, size_t *ret_count);

#endif
