/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server (net) - one listener for HTTP/1.1, HTTP/2, gRPC and gRPC-Web, all in plain text or all in
 * TLS; knows no profiles.
 *
 * The first bytes of a connection decide the protocol. One loop thread (libuv) reads and writes;
 * a pool of workers runs the handlers, each on one complete request. Bodies arrive decompressed
 * (Content-Encoding, grpc-encoding: gzip, deflate, zstd, identity) and below the route's limit.
 * Bounds: connections, streams per connection, header bytes, body bytes per route and in flight
 * for all, idle and read time-outs; each excess is answered (413, 429, 431, 408, 503) and counted.
 * When there are too many connections, in all or from one peer, the one that has been idle longest
 * is closed. Each answer has `nosniff` and, unless its handler sets another value, `no-store`.
 *
 * The server calls `net_server_options.authorize` for each request, and `tls` once per connection,
 * on the loop thread, so that new certificates need no restart.
 */
#ifndef FIRN_NET_SERVER_H
#define FIRN_NET_SERVER_H

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"

struct budget; /* base/budget.h */

enum net_protocol { NET_HTTP1, NET_HTTP2 };
enum net_rpc { NET_RPC_NONE, NET_RPC_GRPC, NET_RPC_GRPC_WEB, NET_RPC_GRPC_WEB_TEXT };

struct net_header {
	struct slice name; /* lower case */
	struct slice value;
};

/* Valid during the handler call. */
struct net_request {
	struct slice method; /* "GET" */
	struct slice path;   /* percent-decoded, without the query */
	struct slice query;  /* raw, without '?' */
	struct slice peer;   /* "127.0.0.1:54321" */
	const struct net_header *headers;
	size_t headers_count;
	struct slice body; /* decompressed; of a gRPC call the one message */
	enum net_protocol protocol;
	enum net_rpc rpc;
	const _Atomic bool
		*cancelled;	/* becomes true once the client has gone; long handlers poll it */
	int64_t deadline_at_ns; /* monotonic; 0 = none (grpc-timeout) */
	const struct budget *answers; /* what all answers hold; NULL = nobody counts */
};

/* True while others have large answers that they did not read yet: go easy on memory. */
bool net_request_others_read(const struct net_request *request);

struct slice net_request_header(const struct net_request *request, const char *name); /* or empty */
/*
 * The n-th (from 0) query parameter `name`, percent-decoded ('+' is a space) into `out`, which is
 * overwritten. False, and `out` empty, if it is absent.
 */
bool net_request_parameter(const struct net_request *request, const char *name, size_t n,
			   struct strbuf *out);

/*
 * Takes the next pair off the front of *query and decodes it into `name` and `value`, which are
 * overwritten. 0 at the end, negative if the percent-encoding is invalid.
 */
int net_parameter_next(struct slice *query, struct strbuf *name, struct strbuf *value);

/*
 * Filled by the handler. For gRPC: body is the one answer message and grpc_status/grpc_message
 * end the call; the HTTP status stays 200. Otherwise status and content_type are used. The server
 * compresses text if the client accepts gzip and the answer is large enough.
 */
struct net_response {
	int status;		  /* preset 200 */
	const char *content_type; /* static text; preset application/octet-stream */
	struct strbuf body;
	struct strbuf headers;		 /* further "name: value\r\n" lines, names in lower case */
	int grpc_status;		 /* preset 0 = OK */
	char message[ERR_MESSAGE_BYTES]; /* grpc-message */
	struct slice static_body; /* used instead of body if data != NULL: bytes that outlive the
				     server */
	bool precompressed;	  /* do not compress (content-encoding given in headers) */
	/* For net_response_pay; the server's to set. */
	struct budget *memory; /* NULL = nobody counts */
	size_t paid_bytes;
	bool is_refused;
};

/*
 * Pays for a body of `bytes`, before it is made or, with what it has by then, after: a large one
 * counts from there on, and not only when it waits to be sent. False: answers that others did not
 * read have all memory for that, and whatever the handler says, the client is told to try again.
 */
MUST_USE bool net_response_pay(struct net_response *response, size_t bytes);

/* An error answer for either world: gRPC status or HTTP status with a JSON body {"error","code"}.
 */
void net_response_error(const struct net_request *request, struct net_response *response,
			const struct err *err);

/*
 * Copies what handlers fill in, except for gRPC, into a response that has no body yet and pays for
 * it; without room for that, `to` is a refusal.
 */
void net_response_copy(const struct net_response *from, struct net_response *to);

typedef void net_handler_f(void *context, const struct net_request *request,
			   struct net_response *response);

#define NET_STREAM_DONE 1

/*
 * A call whose client streams messages, which the server may reply to meanwhile and answers once:
 * gRPC over HTTP/2 only. Each message is handled as it arrives, one after the other, on any worker;
 * messages that arrive faster wait on the wire.
 */
struct net_stream {
	/*
	 * `request->body` is a message; *state is NULL at the first one. The content of `reply` is
	 * sent at once, as one message; if it is empty, there is no reply. Returns 0, or
	 * NET_STREAM_DONE to answer the call now, before its end, or an error, which ends the call.
	 */
	int (*message)(void *context, const struct net_request *request, void **state,
		       struct strbuf *reply, struct err *err);
	/*
	 * After the last message: answers, and frees the state, which is NULL if there was none.
	 */
	void (*finish)(void *context, const struct net_request *request, void *state,
		       struct net_response *response);
	bool replies; /* an answer without a body only ends the call, without a message */
	/*
	 * The call ended before `finish`: frees the state. Any thread; must not wait. NULL if there
	 * is never a state.
	 */
	void (*abandon)(void *context, void *state);
	/*
	 * Usually NULL. Otherwise the answer does not end: the server sends this message again
	 * whenever it has changed, until the client leaves or the server stops. `finish` makes the
	 * first one and keeps the state, if any. Loop thread; must not wait.
	 */
	void (*watch)(void *context, const void *state, struct strbuf *out);
};

/* The permission that a client needs for a route. */
enum net_role {
	NET_ROLE_NONE, /* nothing: everyone */
	NET_ROLE_INGEST,
	NET_ROLE_QUERY,
	NET_ROLE_ADMIN,
	NET_ROLE_PROBE, /* nothing, under any host name: health checks */
};

struct net_route {
	const char *method; /* "GET", "POST"; "*" = any; gRPC calls are POST */
	const char *path;   /* exact, or a prefix if it ends in "*"; the longest wins */
	net_handler_f *handler;
	void *context;
	size_t body_bytes_max; /* decompressed; 0 = no body allowed; of a stream: of one message */
	const struct net_stream *stream; /* instead of a handler; usually NULL */
	enum net_role role;
	bool ignores_body; /* the body is discarded as it arrives, up to body_bytes_max */
};

#define NET_SERVER_ASKERS 64u /* workers for NET_ROLE_QUERY: handlers may wait for each other */

struct net_server;
struct hosts; /* net/http/hosts.h */
struct tls;   /* net/tls.h */

struct net_server_options {
	const char *address; /* "127.0.0.1:7070", "[::1]:0"; port 0 = any free */
	const struct net_route *routes;
	size_t routes_count;
	unsigned workers;	   /* 0 = default */
	size_t inflight_bytes_max; /* bodies of all running requests; 0 = default */
	struct budget *memory;	   /* a budget that others share; NULL = none; borrowed */
	unsigned connections_max;  /* 0 = default */
	int64_t idle_timeout_ns;   /* 0 = default */
	/*
	 * NULL = everyone may do everything. Returns an HTTP status: 200, 401, 403 or 429. Called
	 * with `at_once` on the loop thread once the headers have arrived, so that nobody sends a
	 * body in vain; it may return 0 if the check takes long, and is then called on a worker.
	 */
	int (*authorize)(void *context, const struct net_request *request, enum net_role role,
			 bool at_once);
	void *authorize_context;
	/* NULL = plain text. Returns a reference to the certificates for a new connection. */
	struct tls *(*tls)(void *context);
	void *tls_context;
	const struct hosts *hosts; /* NULL = any name; only probes may use others; borrowed */
	struct slice headers; /* lines for each answer that lacks a header of that name; borrowed */
	struct slice path_prefix; /* "/profiles": may stand before every path; borrowed */
};

/*
 * Binds, listens and starts the threads. If the port is in use, the error names the process that
 * holds it, if that can be found (/proc/net/tcp, /proc/PID/fd).
 */
int net_server_start(const struct net_server_options *options, struct net_server **ret,
		     struct err *err);
unsigned net_server_port(const struct net_server *server);

/* Stops accepting, finishes running requests (at most grace_ns), closes, joins the threads. Accepts
 * NULL. */
void net_server_stop(struct net_server *server, int64_t grace_ns);

/* True if "host:port" is a loopback address (127.0.0.0/8, ::1, localhost). */
bool net_address_is_loopback(const char *address);

#endif
