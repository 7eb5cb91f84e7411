/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oauth2 - tokens for client credentials (RFC 6749, section 4.4), got from a token server and kept
 * until they expire.
 *
 * Who has the same credentials has the same token: while one thread gets it the others wait for
 * what becomes of that. A failure holds for OAUTH2_RETRY_NS, so that a thousand targets ask a token
 * server that is down as often as one. Any thread; the tokens are the process's.
 */
#ifndef FIRN_REMOTE_ACCESS_OAUTH2_H
#define FIRN_REMOTE_ACCESS_OAUTH2_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "config/http_access_config.h"

#define OAUTH2_RETRY_NS (5 * CLOCK_NS_PER_S)

/*
 * Appends "TYPE TOKEN", as it stands in the header `authorization`. `cancelled` may be NULL. Errors
 * name the token server.
 */
int oauth2_add_token(const struct http_oauth2_config *config, int64_t deadline_at_ns,
		     const _Atomic bool *cancelled, struct strbuf *out, struct err *err);

/*
 * What a token server answered: appends "TYPE TOKEN" and tells how long it holds, 0 when the server
 * does not. ERR_INVALID: it is no such answer.
 */
int oauth2_read_answer(struct slice text, struct strbuf *out, int64_t *ret_lasts_ns,
		       struct err *err);

#endif
