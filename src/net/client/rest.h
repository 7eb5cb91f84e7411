/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest - requests of any method to one server over HTTP/1.1, on a connection that is kept between
 * them. Whole bodies in and out. Blocks; one thread at a time.
 *
 * The answer is untrusted: its head and its body are bounded, and a truncated body is an error. It
 * does not follow redirects and does not retry.
 */
#ifndef FIRN_NET_CLIENT_REST_H
#define FIRN_NET_CLIENT_REST_H

#include "base/clock.h"
#include "base/strbuf.h"
#include "net/tls.h"

struct rest;

struct rest_request {
	const char *method;
	const char *target;   /* path and query, escaped */
	struct slice headers; /* "name: value\r\n" lines, without host and content-length */
	struct slice body;
	int64_t deadline_at_ns; /* monotonic; for all of it */
	uint64_t body_bytes_max;
	const _Atomic bool *stops[2]; /* the call ends soon after one is set; each may be NULL */
};

struct rest_answer {
	int status;
	struct strbuf headers; /* "name: value\r\n" lines, names in lower case */
	struct strbuf body;
	uint64_t length; /* the value of Content-Length, also in an answer to HEAD; 0 without one */
};

/* `url` is http[s]://HOST[:PORT]; takes a reference to `tls`, which may be NULL. */
MUST_USE int rest_new(const char *url, struct tls *tls, struct rest **ret, struct err *err);
void rest_free(struct rest *rest); /* accepts NULL */

/* Host and port as in the URL: the value of the header Host. */
const char *rest_authority(const struct rest *rest);

/*
 * An answer with any status is a success. ERR_UNAVAILABLE (no connection, no answer, or a truncated
 * one), ERR_DENIED (not trusted), ERR_DEADLINE, ERR_CANCELLED (by a stop), ERR_LIMIT (more than
 * body_bytes_max). Free the answer after success.
 */
MUST_USE int rest_ask(struct rest *rest, const struct rest_request *request,
		      struct rest_answer *ret, struct err *err);

/* No call lasts beyond `at_ns` (monotonic), not even a running one. Any thread. */
void rest_end_by(struct rest *rest, int64_t at_ns);

void rest_answer_free(struct rest_answer *answer);

/* The header's value, or empty; the name in lower case. */
struct slice rest_header(const struct rest_answer *answer, const char *name);

#endif
