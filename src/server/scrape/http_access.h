/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_access - an http_access_config made ready for one request: the header that proves who we
 * are, and certificates. Files are read anew each time, since tokens and certificates change.
 */
#ifndef FIRN_SERVER_SCRAPE_HTTP_ACCESS_H
#define FIRN_SERVER_SCRAPE_HTTP_ACCESS_H

#include "config/http_access_config.h"
#include "net/client/fetch.h"

struct http_access {
	struct strbuf headers;
	struct tls *tls; /* NULL when it is not wanted */
};

/* Errors name the file. http_access_free must follow in any case. */
int http_access_make(const struct http_access_config *config, bool wants_tls,
		     struct http_access *ret, struct err *err);
/* The certificates alone; tls_unref them. */
int http_access_tls(const struct http_access_config *config, struct tls **ret, struct err *err);
void http_access_free(struct http_access *access);

#endif
