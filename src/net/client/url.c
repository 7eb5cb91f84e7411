/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client/url.h"

#include <stdio.h>

static int bad_url(const char *url, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "address \"%.200s\": %s", url, why);
}

int url_parse(const char *url, struct url *ret, struct err *err)
{
	struct slice text = slice_of(url), authority, rest;
	char with_port[ADDRESS_HOST_BYTES + 32];
	bool is_http = slice_starts_with(text, SLICE_LITERAL("http://"));
	const char *bracket, *colon;

	ret->is_tls = slice_starts_with(text, SLICE_LITERAL("https://"));
	if (!is_http && !ret->is_tls)
		return bad_url(url, "it begins with neither http:// nor https://", err);
	if (text.len > URL_BYTES_MAX)
		return bad_url(url, "it is too long", err);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return bad_url(url, "blanks and bytes beyond ASCII have to be escaped",
				       err);
	text = slice_tail(text, is_http ? strlen("http://") : strlen("https://"));
	authority = slice_cut(text, '/', &rest);
	ret->path = slice_tail(text, authority.len);
	if (authority.len >= ADDRESS_HOST_BYTES || !authority.len ||
	    memchr(authority.data, '@', authority.len) ||
	    memchr(authority.data, '?', authority.len))
		return bad_url(url, "no host and port", err);
	snprintf(ret->authority, sizeof(ret->authority), "%.*s", SLICE_FMT(authority));
	bracket = strrchr(ret->authority, ']');
	colon = strrchr(ret->authority, ':');
	if (colon && (!bracket || colon > bracket))
		return address_parse(authority, &ret->address, err);
	snprintf(with_port, sizeof(with_port), "%s:%d", ret->authority, ret->is_tls ? 443 : 80);
	return address_parse(slice_of(with_port), &ret->address, err);
}
