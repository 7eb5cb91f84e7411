/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web - the address of this server for browsers, and the pages that may call it:
 * --web-external-url, --web-cors-origin and --web-embed-origin.
 *
 * The path of the URL may prefix every path of a request, whether the proxy removes it or not. With
 * a CORS origin, each answer allows its pages to read it (fetch.spec.whatwg.org), and OPTIONS
 * requests are answered; requests that change something are still refused (origin.h). Pages of
 * --web-embed-origin may show our page in a frame; without it, only our own may.
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
/* Adds the headers that say which pages may read the answers, and then the lines of `more`. */
void web_add_headers(struct web *web, struct slice more);
void web_free(struct web *web);

#endif
