/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_access - prepares an http_access_config for one request: the authorization header,
 * certificates, the proxy. Files are read again each time, because tokens and certificates change.
 */
#ifndef FIRN_REMOTE_ACCESS_HTTP_ACCESS_H
#define FIRN_REMOTE_ACCESS_HTTP_ACCESS_H

#include "config/http_access_config.h"
#include "net/client/fetch.h"

struct http_access {
	struct strbuf headers;
	struct tls *tls; /* NULL if it is not needed, or the request has its own */
};

/*
 * Completes `fetch`, which has its URL, its deadline and its cancel flag; `headers` are further
 * lines, or NULL. May wait for a token server. Errors name the file or the server. The caller must
 * call http_access_free after the request in any case.
 */
int http_access_make(const struct http_access_config *config, const char *headers,
		     struct fetch *fetch, struct http_access *ret, struct err *err);
void http_access_free(struct http_access *access);

struct http_request {
	const char *url, *socket_path;
	const char *headers; /* in addition to the authorization; may be NULL */
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
 * A GET whose body may end with its connection. If the status is not 200: ERR_UNAVAILABLE with the
 * beginning of the answer. *ret_status is the status, or 0 without an answer.
 */
int http_access_get(const struct http_request *request, int *ret_status, struct err *err);

#endif
