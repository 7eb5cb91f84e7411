/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What handlers ask of a request: its headers and parameters (net/server.h).
 */
#include "net/server.h"

#include "net/http/uri.h"

struct slice net_request_header(const struct net_request *request, const char *name)
{
	for (size_t i = 0; i < request->headers_count; i++)
		if (slice_is(request->headers[i].name, name))
			return request->headers[i].value;
	return (struct slice){ 0 };
}

int net_parameter_next(struct slice *query, struct strbuf *name, struct strbuf *value)
{
	struct slice raw_value, raw_name;

	do {
		if (!query->len)
			return 0;
		raw_name = slice_cut(slice_cut(*query, '&', query), '=', &raw_value);
	} while (!raw_name.len);
	strbuf_clear(name);
	strbuf_clear(value);
	return uri_decode(raw_name, true, name) && uri_decode(raw_value, true, value)
		       ? 1
		       : -ERR_INVALID;
}

/* The value as it stands in the query, of the n-th parameter of that name. */
static bool find_parameter(struct slice query, const char *name, size_t n, struct strbuf *decoded,
			   struct slice *ret)
{
	while (query.len) {
		struct slice key = slice_cut(slice_cut(query, '&', &query), '=', ret);

		strbuf_clear(decoded);
		if (uri_decode(key, true, decoded) && slice_is(strbuf_slice(decoded), name) && !n--)
			return true;
	}
	return false;
}

bool net_request_parameter(const struct net_request *request, const char *name, size_t n,
			   struct strbuf *out)
{
	struct slice value;
	bool is_there = find_parameter(request->query, name, n, out, &value);

	strbuf_clear(out); /* of the names that were looked at */
	if (is_there && uri_decode(value, true, out))
		return true;
	strbuf_clear(out);
	return false;
}
