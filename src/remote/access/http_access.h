/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_access - an http_access_config made ready for one request: the header that proves who we
 * are, certificates, the proxy. Files are read anew each time, since tokens and certificates
 * change.
 */
#ifndef FIRN_REMOTE_ACCESS_HTTP_ACCESS_H
#define FIRN_REMOTE_ACCESS_HTTP_ACCESS_H

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

struct http_request {
	const char *url, *socket_path;
	const char *headers; /* besides what proves who we are; may be NULL */
	const struct http_access_config *access;
	int64_t timeout_ns;
	uint64_t body_bytes_max;
	/* The body of a 200 begins; may be NULL. */
	int (*begin)(void *context, uint64_t bytes, struct err *err);
	int (*take)(void *context, struct slice bytes, struct err *err);
	void *context;
	const _Atomic bool *cancelled;
};

/*
 * A GET whose body may end with its connection. ERR_UNAVAILABLE with the beginning of the answer
 * when its status is not 200 (and *ret_status, which is 0 without an answer).
 */
int http_access_get(const struct http_request *request, int *ret_status, struct err *err);

#endif
