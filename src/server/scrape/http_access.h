/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_access - an http_access_config made ready for one request: the header that proves who we
 * are, certificates, the proxy. Files are read anew each time, since tokens and certificates
 * change.
 */
#ifndef FIRN_SERVER_SCRAPE_HTTP_ACCESS_H
#define FIRN_SERVER_SCRAPE_HTTP_ACCESS_H

#include "config/http_access_config.h"
#include "net/client/fetch.h"

struct http_access {
	struct strbuf headers;
	struct tls *tls; /* NULL when it is not wanted, or the request has some */
};

/*
 * Completes `fetch`, which has its URL, its deadline and who may cancel it; `headers` are further
 * lines, or NULL. May wait for a token server. Errors name the file or the server.
 * http_access_free must follow in any case, after the request.
 */
int http_access_make(const struct http_access_config *config, const char *headers,
		     struct fetch *fetch, struct http_access *ret, struct err *err);
void http_access_free(struct http_access *access);

#endif
