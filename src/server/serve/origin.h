/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - refuses requests that change something if a page of another site sent them.
 *
 * A page of another site in the operator's browser must not write, delete or cancel: a request with
 * an Origin is refused unless that is this server. With DNS rebinding, Origin and Host agree, but
 * name the page: on servers without logins net/http/hosts.h refuses such requests earlier.
 */
#ifndef FIRN_SERVER_SERVE_ORIGIN_H
#define FIRN_SERVER_SERVE_ORIGIN_H

#include "net/server.h"

/* ERR_DENIED names the page. */
int origin_check(const struct net_request *request, struct err *err);

#endif
