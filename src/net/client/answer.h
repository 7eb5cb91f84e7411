/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - an HTTP/1.1 answer (RFC 9112) to a GET, read as its bytes arrive, on llhttp in its
 * strict mode. No socket: bytes in, calls out.
 *
 * Only the body of a 200 is handed over, and it must say where it ends. Bounded: the head, the
 * body.
 */
#ifndef FIRN_NET_CLIENT_ANSWER_H
#define FIRN_NET_CLIENT_ANSWER_H

#include <llhttp.h>

#include "base/err.h"
#include "base/strbuf.h"

/* What is not 0 ends the reading. */
struct answer_sink {
	/* The body of a 200 begins; `bytes` is 0 when its size is not known. May be NULL. */
	int (*begin)(void *context, uint64_t bytes, struct err *err);
	int (*take)(void *context, struct slice bytes, struct err *err);
	void *context;
	uint64_t bytes_max;	/* of the body */
	struct strbuf *refusal; /* the beginning of the body that is not a 200's; may be NULL */
	bool may_end_with_connection; /* a body that does not say where it ends is taken */
};

#define ANSWER_REFUSAL_BYTES_MAX 256u

struct answer {
	const struct answer_sink *sink;
	llhttp_t parser;
	struct strbuf name, value; /* of the header being read */
	struct strbuf location;	   /* where a redirection leads */
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
 * 0 (look at is_over), what the sink returned, ERR_LIMIT, ERR_UNAVAILABLE when it is no such
 * answer. Nothing more after an error or the end.
 */
int answer_add(struct answer *answer, struct slice bytes, struct err *err);

/* The connection has ended properly: whether that ends the answer, too. */
bool answer_end(struct answer *answer);

/* True if it is a redirection to `location`. */
bool answer_is_redirection(const struct answer *answer);

#endif
