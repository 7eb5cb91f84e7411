/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dedupe - which reports were stored in the last 24 hours, so that a retry counts once.
 *
 * Holds one 128-bit identity per report, of (series, start, batch id), with the time of receipt.
 * The answers depend only on the calls and the times given, so replaying the log gives the same
 * ones. Bounded by DEDUPE_REPORTS_MAX: the oldest are forgotten, which a metric counts. One thread
 * at a time.
 */
#ifndef FIRN_SERVER_PERSIST_BATCH_DEDUPE_H
#define FIRN_SERVER_PERSIST_BATCH_DEDUPE_H

#include "base/idmap.h"
#include "base/strbuf.h"
#include "server/persist/disk/byte_reader.h"
#include "model/identity.h"

#define DEDUPE_REPORTS_MAX ((uint32_t)8 << 20) /* 24 bytes and some map each: 400 MB */

struct dedupe_entry {
	struct identity report;
	int64_t received_ns;
};

struct dedupe {
	struct dedupe_entry *entries; /* in order of receipt */
	uint32_t count, capacity;
	struct idmap map;
	uint64_t forgotten; /* because of the bound */
};

void dedupe_fini(struct dedupe *dedupe);
void dedupe_check(const struct dedupe *dedupe); /* aborts when it contradicts itself */

/* True when it was seen within STORE_DEDUPE_NS before `now_ns`; otherwise it is remembered now. */
bool dedupe_seen(struct dedupe *dedupe, struct identity report, int64_t now_ns);

/* Frees entries older than STORE_DEDUPE_NS. */
void dedupe_expire(struct dedupe *dedupe, int64_t now_ns);

void dedupe_encode(const struct dedupe *dedupe, struct strbuf *out);
MUST_USE bool dedupe_decode(struct dedupe *dedupe, struct byte_reader *in);

#endif
