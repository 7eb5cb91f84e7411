/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unchanged - answers that a client has already: each gets an `etag`, and one that says so in
 * `if-none-match` gets a 304 without a body. Any thread.
 */
#ifndef FIRN_SERVER_SERVE_API_UNCHANGED_H
#define FIRN_SERVER_SERVE_API_UNCHANGED_H

#include "net/server.h"

/*
 * Names a finished answer by what is in it, but for the bounds of the range that was asked for
 * ("from_ms", "to_ms"): these move with the clock while nothing else does. Takes the body out of
 * an answer that the request says it has. Others than 200 stay as they are.
 */
void unchanged_check(const struct net_request *request, struct net_response *response);

#endif
