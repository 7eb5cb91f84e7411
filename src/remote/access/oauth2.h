/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oauth2 - tokens for client credentials (RFC 6749, section 4.4), fetched from a token server and
 * cached until they expire.
 *
 * Configurations with equal credentials share a token: while one thread fetches it, the others wait
 * for the result. A failure is cached for OAUTH2_RETRY_NS, so that a thousand targets query a dead
 * token server as often as one; only a caller who has more than twice the time of a request that
 * ran out of it queries at once. Any thread; the cache belongs to the process.
 */
#ifndef FIRN_REMOTE_ACCESS_OAUTH2_H
#define FIRN_REMOTE_ACCESS_OAUTH2_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "config/http_access_config.h"

#define OAUTH2_RETRY_NS (5 * CLOCK_NS_PER_S)

/*
 * Appends "TYPE TOKEN", the value of the header `authorization`. `cancelled` may be NULL. Errors
 * name the token server.
 */
int oauth2_add_token(const struct http_oauth2_config *config, int64_t deadline_at_ns,
		     const _Atomic bool *cancelled, struct strbuf *out, struct err *err);

/*
 * Reads a token server's answer: appends "TYPE TOKEN"; *ret_lasts_ns is the token's lifetime, or 0
 * if the answer does not have it. ERR_INVALID: the answer is malformed.
 */
int oauth2_read_answer(struct slice text, struct strbuf *out, int64_t *ret_lasts_ns,
		       struct err *err);

#endif
