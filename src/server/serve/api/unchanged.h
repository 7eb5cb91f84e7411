/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unchanged - conditional requests: each answer gets an `etag`, and a client that sends it in
 * `if-none-match` gets a 304 without a body. Any thread.
 */
#ifndef FIRN_SERVER_SERVE_API_UNCHANGED_H
#define FIRN_SERVER_SERVE_API_UNCHANGED_H

#include "net/server.h"

/*
 * Sets the etag of a finished answer: a hash of its content without the bounds of the range
 * ("from_ms", "to_ms"), which move with the clock. If the request has the etag, the answer becomes
 * a 304. Answers other than 200 stay as they are.
 */
void unchanged_check(const struct net_request *request, struct net_response *response);

#endif
