/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route - finds the handler for a path and method.
 *
 * An exact path wins over any prefix ("/ui/" + "*"), a longer prefix over a shorter one; among
 * equals a route that names the method wins over "*". A route for GET accepts HEAD, too.
 */
#ifndef FIRN_NET_HTTP_ROUTE_H
#define FIRN_NET_HTTP_ROUTE_H

#include "net/server.h"

struct route_match {
	const struct net_route *route; /* NULL: none */
	bool path_exists;	       /* some route has the path, though not for this method */
};

struct route_match route_find(const struct net_route *routes, size_t count, struct slice method,
			      struct slice path);

/* Appends the methods of `path` in the form of an Allow header: "GET, HEAD, POST". */
void route_add_methods(const struct net_route *routes, size_t count, struct slice path,
		       struct strbuf *out);

#endif
