/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - reads an HTTP/1.1 answer (RFC 9112) to a GET as its bytes arrive, with llhttp in strict
 * mode. No socket: bytes in, calls out.
 *
 * Only the body of a 200 is passed on, and its end must be announced. Bounded: the head, the body.
 */
#ifndef FIRN_NET_CLIENT_ANSWER_H
#define FIRN_NET_CLIENT_ANSWER_H

#include <llhttp.h>

#include "base/err.h"
#include "base/strbuf.h"

/* Receives the body. A callback's result other than 0 ends the reading. */
struct answer_sink {
	/* The body of a 200 begins; `bytes` is 0 if its size is unknown. May be NULL. */
	int (*begin)(void *context, uint64_t bytes, struct err *err);
	int (*take)(void *context, struct slice bytes, struct err *err);
	void *context;
	uint64_t bytes_max;	      /* of the body */
	struct strbuf *refusal;	      /* the beginning of the body of another status; may be NULL */
	bool may_end_with_connection; /* accepts a body that ends with the connection */
};

#define ANSWER_REFUSAL_BYTES_MAX 256u

struct answer {
	const struct answer_sink *sink;
	llhttp_t parser;
	struct strbuf name, value; /* of the header being read */
	struct strbuf location;	   /* the target of a redirect */
	size_t head_bytes;
	uint64_t bytes; /* of the body so far */
	int status;	/* of the last head; 0 = none yet */
	bool is_over;
	int code; /* why a callback stopped the parser */
	struct err *err;
};

void answer_begin(struct answer *answer, const struct answer_sink *sink);
void answer_free(struct answer *answer);

/*
 * Returns 0 (then check is_over), the sink's error, ERR_LIMIT, or ERR_UNAVAILABLE for malformed
 * answers. Must not be called after an error or the end.
 */
int answer_add(struct answer *answer, struct slice bytes, struct err *err);

/* The connection has ended properly. True if that completes the answer. */
bool answer_end(struct answer *answer);

/* True if it is a redirect to `location`. */
bool answer_is_redirection(const struct answer *answer);

#endif
