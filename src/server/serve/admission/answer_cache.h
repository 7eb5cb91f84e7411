/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer_cache - answers to queries, kept for the next client that sends an equal query.
 *
 * The key is the query (coalesce_key); the version says what the answer was made of (the store's
 * snapshot and the resolver's sources). An answer is given for an equal key and version only, and
 * for ANSWER_CACHE_NS at most, so that symbols that were missing are looked for again. The answers
 * that were asked for least recently leave first. Thread-safe.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_ANSWER_CACHE_H
#define FIRN_SERVER_SERVE_ADMISSION_ANSWER_CACHE_H

#include "base/clock.h"
#include "net/server.h"

#define ANSWER_CACHE_COUNT_MAX 512u
#define ANSWER_CACHE_BYTES_DEFAULT ((size_t)16 << 20)
#define ANSWER_CACHE_NS (60 * CLOCK_NS_PER_S)

struct answer_cache;

struct answer_cache *answer_cache_new(size_t bytes_max); /* of all answers with their keys */
void answer_cache_free(struct answer_cache *cache);	 /* accepts NULL */

/* At the monotonic time `now_ns`, likewise below. True: `response`, as preset, has the answer. */
bool answer_cache_find(struct answer_cache *cache, struct slice key, uint64_t version,
		       int64_t now_ns, struct net_response *response);

/* Copies it, unless it would take more than a quarter of all bytes. */
void answer_cache_put(struct answer_cache *cache, struct slice key, uint64_t version,
		      int64_t now_ns, const struct net_response *response);

/* Gives up those that nobody will be given any more. */
void answer_cache_age(struct answer_cache *cache, int64_t now_ns);

#endif
