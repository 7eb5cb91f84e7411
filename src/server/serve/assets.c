/* SPDX-License-Identifier: Apache-2.0 */
/* assets - the web UI out of the binary. */
#include "codec/archive/compress.h"
#include "server/serve/serve.h"
#include "ui/ui_assets.h"

#define ASSET_BYTES_MAX ((size_t)64 << 20)
#define CSP                                                                                        \
	"content-security-policy: default-src 'self'; img-src 'self' data:; object-src 'none'; "   \
	"base-uri 'self'; frame-ancestors 'self' %s\r\n"                                           \
	"x-content-type-options: nosniff\r\nreferrer-policy: same-origin\r\n"

static bool accepts_gzip(const struct net_request *request)
{
	struct slice accepted = net_request_header(request, "accept-encoding");

	return accepted.len && memmem(accepted.data, accepted.len, "gzip", 4);
}

/* A browser gets a page, but not below folders: the page names its files relative to itself. */
static bool wants_page(const struct net_request *request)
{
	struct slice accepted = net_request_header(request, "accept");

	return accepted.len && memmem(accepted.data, accepted.len, "text/html", 9) &&
	       !memchr(request->path.data + 1, '/', request->path.len - 1);
}

void asset_get(void *context, const struct net_request *request, struct net_response *response)
{
	const struct serve *serve = context;
	const struct ui_asset *asset = ui_asset_find(request->path);
	struct slice seen = net_request_header(request, "if-none-match");
	struct err err;

	if (!asset && wants_page(request)) {
		asset = ui_asset_find(slice_of("/"));
		response->status = 404;
	}
	if (!asset) {
		err_set(&err, ERR_NOT_FOUND, "nothing at \"%.*s\"", SLICE_FMT(request->path));
		net_response_error(request, response, &err);
		return;
	}
	strbuf_addf(&response->headers, "etag: %s\r\ncache-control: %s\r\n" CSP, asset->etag,
		    asset->immutable ? "public, max-age=31536000, immutable" : "no-cache",
		    serve->embed_origin);
	response->content_type = asset->content_type;
	if (response->status != 404 && slice_is(seen, asset->etag)) {
		response->status = 304;
		return;
	}
	if (!accepts_gzip(request)) {
		if (compress_gunzip(slice_from(asset->gzip_data, asset->gzip_len), ASSET_BYTES_MAX,
				    &response->body, &err))
			net_response_error(request, response, &err);
		return;
	}
	strbuf_add_text(&response->headers, "content-encoding: gzip\r\nvary: accept-encoding\r\n");
	response->precompressed = true;
	response->static_body = slice_from(asset->gzip_data, asset->gzip_len);
}
