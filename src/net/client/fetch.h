/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch - one GET (or POST) over HTTP/1.1, plain or TLS, that passes the body on as it arrives: for
 * other people's servers (debuginfod, scrape targets, discovery). Blocks; uses a connection of its
 * own for each call; follows redirects, but never from https to http.
 *
 * The answer is untrusted: its head, its body and its redirects are bounded, and the end of a body
 * must be announced, unless the caller can recognise a complete one.
 */
#ifndef FIRN_NET_CLIENT_FETCH_H
#define FIRN_NET_CLIENT_FETCH_H

#include "base/clock.h"
#include "base/strbuf.h"
#include "net/tls.h"

struct fetch {
	const char *url;	 /* http://HOST[:PORT]/PATH or https: */
	const char *socket_path; /* connect to this Unix socket instead of HOST; NULL = no */
	struct tls *tls;	 /* for https: tls_client_new with http1_only; NULL: no TLS */
	const char *tls_name; /* the name in HOST's certificate; NULL = HOST; not for redirects */
	/*
	 * http://[USER:PASSWORD@]HOST[:PORT]: this proxy forwards plain requests and tunnels https
	 * (CONNECT, RFC 9110 section 9.3.6); NULL = none.
	 */
	const char *proxy;
	struct slice post; /* a POST with this body, whose type is in the headers; empty: GET */
	int64_t deadline_at_ns; /* monotonic; for all of it */
	uint64_t body_bytes_max;
	/* The body of a 200 begins; `bytes` is 0 if its size is unknown. May be NULL. */
	int (*begin)(void *context, uint64_t bytes, struct err *err);
	/* A piece of the body of a 200. A result other than 0 ends the call. */
	int (*take)(void *context, struct slice bytes, struct err *err);
	void *context;
	const _Atomic bool *cancelled; /* polled several times a second; may be NULL */
	const char *headers;	/* "name: value\r\n" lines, only for the URL's own host; or NULL */
	struct strbuf *refusal; /* receives the beginning of the body of another status; or NULL */
	bool may_end_with_connection; /* accepts a body that ends with the connection */
	bool stays;		      /* a redirect is not followed */
};

/*
 * *ret_status is the HTTP status; an answer with any status is a success of the call. ERR_INVALID
 * (the URL), ERR_UNAVAILABLE, ERR_DENIED (not trusted), ERR_DEADLINE, ERR_LIMIT, ERR_CANCELLED, or
 * the result of `take`.
 */
int fetch_get(const struct fetch *fetch, int *ret_status, struct err *err);

/* Adds a line "NAME: Basic ..." with "user:password" (RFC 7617). */
void fetch_add_basic(struct strbuf *headers, const char *name, struct slice user_and_password);

/*
 * Makes the error for callers that accept only 200: ERR_UNAVAILABLE with the status and the content
 * of `refusal`.
 */
int fetch_refused(int status, struct strbuf *refusal, struct err *err);

/* 0 if fetch_get would accept the URL; ERR_INVALID says why not. */
int fetch_check_url(const char *url, struct err *err);
int fetch_check_proxy(const char *proxy, struct err *err); /* the same for a proxy */
/* Appends the text, escaped for the path of a URL; each "/" stays as it is. */
void fetch_add_path(struct strbuf *url, struct slice text);

/* Appends "&name=" and the value, with each byte escaped; nothing if the value is empty. */
void fetch_add_parameter(struct strbuf *url, const char *name, struct slice value);

#endif
