/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web - where browsers have this server, and which pages may ask it: --web-external-url and
 * --web-cors-origin.
 *
 * The path of the URL may stand before every path of a request, whether the proxy in front takes it
 * off or not. With an origin, each answer says that its pages may read it (fetch.spec.whatwg.org),
 * and OPTIONS requests are answered; what changes something is refused to them nevertheless
 * (origin.h). Pages of --web-embed-origin may show ours in a frame; without it, none but our own.
 */
#ifndef FIRN_SERVER_SERVE_WEB_H
#define FIRN_SERVER_SERVE_WEB_H

#include "base/err.h"
#include "base/strbuf.h"

#define WEB_HOST_BYTES 254
#define WEB_PREFIX_BYTES 128
#define WEB_ORIGIN_BYTES 272

struct web {
	char host[WEB_HOST_BYTES];     /* without port; "" when there is no URL */
	char prefix[WEB_PREFIX_BYTES]; /* "/profiles", or "" */
	char origin[WEB_ORIGIN_BYTES]; /* or "" */
	char embed[WEB_ORIGIN_BYTES];  /* whose pages may have ours in a frame, or "" */
	struct strbuf headers;	       /* lines for every answer */
};

/* Any may be NULL. Errors name the option. */
int web_read(const char *external_url, const char *cors_origin, const char *embed_origin,
	     struct web *ret, struct err *err);
/* What the pages may read, and then `more` lines. */
void web_add_headers(struct web *web, struct slice more);
void web_free(struct web *web);

#endif
