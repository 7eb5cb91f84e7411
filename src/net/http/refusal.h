/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal - the reasons for which the server itself, not a handler, refuses a request: one list of
 * their statuses, texts and counters.
 */
#ifndef FIRN_NET_HTTP_REFUSAL_H
#define FIRN_NET_HTTP_REFUSAL_H

#include "base/clock.h"
#include "net/http/grpc.h"

/* X(name, label, HTTP status, gRPC status, seconds after which to try again (0 = do not), text) */
#define REFUSALS(X)                                                                                \
	X(MALFORMED, "malformed", 400, GRPC_INVALID_ARGUMENT, 0, "malformed request")              \
	X(TLS, "tls", 400, GRPC_INVALID_ARGUMENT, 0, "TLS is not spoken here")                     \
	X(PLAIN_TEXT, "plain_text", 400, GRPC_INVALID_ARGUMENT, 0,                                 \
	  "this port speaks TLS: the address begins with https://")                                \
	X(UNAUTHENTICATED, "unauthenticated", 401, GRPC_UNAUTHENTICATED, 0, "not authenticated")   \
	X(FORBIDDEN, "forbidden", 403, GRPC_PERMISSION_DENIED, 0, "not permitted")                 \
	X(NO_ROUTE, "no_route", 404, GRPC_UNIMPLEMENTED, 0, "nothing here")                        \
	X(METHOD, "method", 405, GRPC_UNIMPLEMENTED, 0, "method not allowed here")                 \
	X(SLOW, "slow", 408, GRPC_DEADLINE_EXCEEDED, 0, "the request did not arrive in time")      \
	X(BODY_BYTES, "body_bytes", 413, GRPC_RESOURCE_EXHAUSTED, 0, "the body is too large")      \
	X(TARGET_BYTES, "target_bytes", 414, GRPC_RESOURCE_EXHAUSTED, 0, "the URL is too long")    \
	X(CODING, "coding", 415, GRPC_UNIMPLEMENTED, 0, "unknown content coding")                  \
	X(EXPECT, "expect", 417, GRPC_INVALID_ARGUMENT, 0, "unknown expectation")                  \
	X(HOST, "host", 421, GRPC_PERMISSION_DENIED, 0, "this server has another name")            \
	X(LOGINS, "logins", 429, GRPC_RESOURCE_EXHAUSTED, 1, "too many passwords are being tried") \
	X(HEAD_BYTES, "head_bytes", 431, GRPC_RESOURCE_EXHAUSTED, 0, "the headers are too large")  \
	X(CANCELLED, "cancelled", 499, GRPC_CANCELLED, 0, "the client went away")                  \
	X(STREAMING, "streaming", 501, GRPC_UNIMPLEMENTED, 0, "the call takes one message")        \
	X(UNARY, "unary", 501, GRPC_UNIMPLEMENTED, 0,                                              \
	  "the call streams messages: gRPC over HTTP/2 only")                                      \
	X(ANSWERS, "answers", 503, GRPC_RESOURCE_EXHAUSTED, 1,                                     \
	  "others have not read their large answers yet; try again")                               \
	X(INFLIGHT, "inflight", 503, GRPC_RESOURCE_EXHAUSTED, 1, "too many bytes in flight")       \
	X(QUEUE, "queue", 503, GRPC_UNAVAILABLE, 1, "too many requests are waiting")               \
	X(CONNECTIONS, "connections", 503, GRPC_UNAVAILABLE, 1, "too many connections")            \
	X(DEADLINE, "deadline", 504, GRPC_DEADLINE_EXCEEDED, 0,                                    \
	  "the deadline passed in the queue")                                                      \
	X(VERSION, "version", 505, GRPC_UNIMPLEMENTED, 0, "HTTP version not supported here")

enum refusal {
#define REFUSAL_ENUM(name, label, http, grpc, retry_s, text) REFUSAL_##name,
	REFUSALS(REFUSAL_ENUM)
#undef REFUSAL_ENUM
		REFUSAL_COUNT
};

struct refusal_info {
	int http, grpc;
	int64_t retry_ns; /* 0 = trying again does not help */
	const char *text;
};

const struct refusal_info *refusal_info(enum refusal refusal);
void refusal_count(enum refusal refusal); /* firn_net_refused_total{reason} */
void refusal_register(void);		  /* the counters */

#endif
