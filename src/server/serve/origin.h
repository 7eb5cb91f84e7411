/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - whether a request that changes something may come from the page that sent it.
 *
 * A page of another site that is open in the operator's browser must not be able to write, delete
 * or cancel: a request with an Origin is refused unless that is this server. A page whose name was
 * made to lead here afterwards (DNS rebinding) has Origin and Host alike, but its own name in both:
 * where nobody has to log in, such requests do not come so far (net/hosts.h).
 */
#ifndef FIRN_SERVER_SERVE_ORIGIN_H
#define FIRN_SERVER_SERVE_ORIGIN_H

#include "net/server.h"

/* ERR_DENIED names the page. */
int origin_check(const struct net_request *request, struct err *err);

#endif
