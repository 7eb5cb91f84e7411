/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/route.h"

/* 0 = no match, else the greater the closer: exact beats prefix, longer beats shorter. */
static size_t closeness(const struct net_route *route, struct slice path)
{
	struct slice pattern = slice_of(route->path);

	if (!pattern.len || pattern.data[pattern.len - 1] != '*')
		return slice_equal(pattern, path) ? SIZE_MAX : 0;
	pattern.len--;
	return slice_starts_with(path, pattern) ? pattern.len + 1 : 0;
}

static bool takes_method(const struct net_route *route, struct slice method)
{
	return slice_is(method, route->method) || !strcmp(route->method, "*") ||
	       (slice_is(method, "HEAD") && !strcmp(route->method, "GET"));
}

struct route_match route_find(const struct net_route *routes, size_t count, struct slice method,
			      struct slice path)
{
	struct route_match match = { 0 };
	size_t best = 0;

	for (size_t i = 0; i < count; i++) {
		size_t close = closeness(&routes[i], path);

		if (!close)
			continue;
		match.path_exists = true;
		if (!takes_method(&routes[i], method))
			continue;
		if (close > best || (close == best && slice_is(method, routes[i].method))) {
			best = close;
			match.route = &routes[i];
		}
	}
	return match;
}

void route_add_methods(const struct net_route *routes, size_t count, struct slice path,
		       struct strbuf *out)
{
	size_t start = out->len;

	for (size_t i = 0; i < count; i++) {
		if (!closeness(&routes[i], path) ||
		    (out->len > start && strstr(out->data + start, routes[i].method)))
			continue;
		strbuf_addf(out, "%s%s", out->len > start ? ", " : "", routes[i].method);
		if (!strcmp(routes[i].method, "GET"))
			strbuf_add_text(out, ", HEAD");
	}
}
