/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch - one GET (or POST) by HTTP/1.1, plain or over TLS, whose body is handed over as it
 * arrives: for what other people's servers give (debuginfod, targets of scraping and who lists
 * them). Blocks; a connection of its own for each call; follows redirections, but never from https
 * to http.
 *
 * The answer comes from a stranger: its head, its body and its redirections are bounded, a body
 * must say where it ends, unless the caller can tell a whole one.
 */
#ifndef FIRN_NET_CLIENT_FETCH_H
#define FIRN_NET_CLIENT_FETCH_H

#include "base/clock.h"
#include "base/strbuf.h"
#include "net/tls.h"

struct fetch {
	const char *url;	 /* http://HOST[:PORT]/PATH or https: */
	const char *socket_path; /* of this host, to be asked in place of HOST; NULL = none */
	struct tls *tls;      /* for https: tls_client_new with http1_only; NULL: there is none */
	const char *tls_name; /* whose certificate HOST has to show; NULL = HOST's; not elsewhere */
	/*
	 * http://[USER:PASSWORD@]HOST[:PORT], which passes plain requests on and tunnels https
	 * (CONNECT, RFC 9110 section 9.3.6); NULL = none.
	 */
	const char *proxy;
	struct slice post; /* a POST with this body, whose type is in the headers; empty: GET */
	int64_t deadline_at_ns; /* monotonic; for all of it */
	uint64_t body_bytes_max;
	/* The body of an answer with status 200 begins; `bytes` is 0 when it is not known. May be
	 * NULL.
	 */
	int (*begin)(void *context, uint64_t bytes, struct err *err);
	/* A piece of the body of an answer with status 200. What is not 0 ends the call. */
	int (*take)(void *context, struct slice bytes, struct err *err);
	void *context;
	const _Atomic bool *cancelled; /* looked at several times a second; may be NULL */
	const char *headers;	/* "name: value\r\n" lines, for the URL's own host alone; or NULL */
	struct strbuf *refusal; /* takes the beginning of a body that is not a 200's; or NULL */
	bool may_end_with_connection; /* a body that does not say where it ends is taken */
	bool stays;		      /* a redirection is an answer like others */
};

/*
 * *ret_status is the HTTP status, and the call a success, whatever it is. ERR_INVALID (the URL),
 * ERR_UNAVAILABLE, ERR_DENIED (not trusted), ERR_DEADLINE, ERR_LIMIT, ERR_CANCELLED, or what
 * `take` returned.
 */
int fetch_get(const struct fetch *fetch, int *ret_status, struct err *err);

/* Adds a line "NAME: Basic ..." with "user:password" (RFC 7617). */
void fetch_add_basic(struct strbuf *headers, const char *name, struct slice user_and_password);

/*
 * The error of an answer that is not 200's, for those who want no other: ERR_UNAVAILABLE with the
 * status and what `refusal` took.
 */
int fetch_refused(int status, struct strbuf *refusal, struct err *err);

/* Whether fetch_get would try it; ERR_INVALID says why not. */
int fetch_check_url(const char *url, struct err *err);
int fetch_check_proxy(const char *proxy, struct err *err); /* the same of a proxy */

/* Appends the text so that it can stand in the path of a URL, with its "/" as they are. */
void fetch_add_path(struct strbuf *url, struct slice text);

/* Appends "&name=" and the value, each byte of it escaped; nothing if it is empty. */
void fetch_add_parameter(struct strbuf *url, const char *name, struct slice value);

#endif
