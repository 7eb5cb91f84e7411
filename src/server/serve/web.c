/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/web.h"

#include <stdio.h>

#include "server/serve/serve.h"
#include "server/serve/texts.h"

/* The rest of "http://..." or "https://..."; no data when it is neither. */
static struct slice after_scheme(struct slice url)
{
	static const char *const schemes[] = { "https://", "http://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (slice_starts_with(url, slice_of(schemes[i])))
			return slice_tail(url, strlen(schemes[i]));
	return (struct slice){ 0 };
}

/* True if all characters need no escaping in a URL or a header. */
static bool is_plain(struct slice text)
{
	static const char more[] = "-._~/:[]";

	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(more, c))))
			return false;
	}
	return true;
}

static struct slice host_of(struct slice authority)
{
	struct slice rest;

	if (authority.len && authority.data[0] == '[')
		return slice_cut(slice_tail(authority, 1), ']', &rest);
	return slice_cut(authority, ':', &rest);
}

static int read_url(const char *text, struct web *ret, struct err *err)
{
	struct slice rest = after_scheme(slice_of(text)), path = { 0 }, host;
	size_t slash = slice_find_byte(rest, '/');

	if (slash != SIZE_MAX) {
		path = slice_tail(rest, slash);
		rest.len = slash;
	}
	host = host_of(rest);
	while (path.len && path.data[path.len - 1] == '/')
		path.len--;
	if (!host.len || host.len >= WEB_HOST_BYTES || path.len >= WEB_PREFIX_BYTES ||
	    !is_plain(rest) || !is_plain(path))
		return err_set(err, ERR_INVALID,
			       "--web-external-url \"%s\": expected http://HOST[:PORT][/PATH]",
			       text);
	snprintf(ret->host, sizeof(ret->host), "%.*s", SLICE_FMT(host));
	snprintf(ret->prefix, sizeof(ret->prefix), "%.*s", SLICE_FMT(path));
	return 0;
}

/* To WEB_ORIGIN_BYTES. */
static int read_origin(const char *option, const char *text, char *ret, struct err *err)
{
	struct slice rest = after_scheme(slice_of(text));
	bool is_any = !strcmp(text, "*");

	if (!is_any && (!rest.len || !is_plain(rest) || strlen(text) >= WEB_ORIGIN_BYTES ||
			slice_find_byte(rest, '/') != SIZE_MAX))
		return err_set(err, ERR_INVALID, "%s \"%s\": expected https://HOST[:PORT], or *",
			       option, text);
	snprintf(ret, WEB_ORIGIN_BYTES, "%s", text);
	return 0;
}

int web_read(const char *external_url, const char *cors_origin, const char *embed_origin,
	     struct web *ret, struct err *err)
{
	int rc = 0;

	*ret = (struct web){ 0 };
	if (external_url)
		rc = read_url(external_url, ret, err);
	if (!rc && cors_origin)
		rc = read_origin("--web-cors-origin", cors_origin, ret->origin, err);
	if (!rc && embed_origin)
		rc = read_origin("--web-embed-origin", embed_origin, ret->embed, err);
	return rc;
}

void web_add_headers(struct web *web, struct slice more)
{
	if (web->origin[0])
		strbuf_addf(&web->headers,
			    "access-control-allow-origin: %s\r\n"
			    "access-control-expose-headers: grpc-status, grpc-message, "
			    "content-encoding, firn-source\r\n"
			    "vary: origin\r\n",
			    web->origin);
	strbuf_add_slice(&web->headers, more);
}

void web_free(struct web *web)
{
	strbuf_free(&web->headers);
}

/* What a page may send; without an origin that may, browsers do not go on. */
void web_options(void *context, const struct net_request *request, struct net_response *response)
{
	(void)context;
	(void)request;
	response->status = 204;
	strbuf_add_text(&response->headers,
			"access-control-allow-methods: GET, POST\r\n"
			"access-control-allow-headers: authorization, content-type, "
			"connect-protocol-version, connect-timeout-ms, grpc-timeout, x-grpc-web, "
			"x-user-agent, x-scope-orgid\r\n"
			"access-control-max-age: 3600\r\n");
}

void answer_openapi(void *context, const struct net_request *request, struct net_response *response)
{
	(void)context;
	(void)request;
	response->content_type = "application/json";
	response->static_body = slice_from(text_openapi, text_openapi_bytes);
}
