/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client (net) - a blocking HTTP/2 client, over TLS or by prior knowledge, for our own use: the
 * agent's export and the CLI. One connection, reconnected on demand; calls are made one at a time
 * from one thread.
 */
#ifndef FIRN_NET_CLIENT_CLIENT_H
#define FIRN_NET_CLIENT_CLIENT_H

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"

struct net_client;

/* Certificate authorities and credentials of a client. All may be NULL. Texts are borrowed. */
struct net_access {
	bool tls;		/* also when the address has no scheme */
	bool trusts_everyone;	/* the server's certificate is not verified */
	const char *ca_file;	/* PEM; default: the system's certificates */
	const char *cert_file;	/* PEM: the client's certificate, and */
	const char *key_file;	/* its key */
	const char *token;	/* sent as "authorization: Bearer ..." */
	const char *token_file; /* likewise; read again for each call */
};

/*
 * `address` is HOST:PORT, http[s]://[USER:PASSWORD@]HOST[:PORT][/], or unix:/PATH. `access` may be
 * NULL. Does not connect yet. ERR_INVALID names the unusable file.
 */
int net_client_new(const char *address, const struct net_access *access, struct net_client **ret,
		   struct err *err);
void net_client_free(struct net_client *client); /* accepts NULL */

/* For shutdown: no call lasts beyond `at_ns` (monotonic), not even a running one. Any thread. */
void net_client_end_by(struct net_client *client, int64_t at_ns);

struct net_reply {
	int status;	 /* HTTP */
	int grpc_status; /* -1 when the answer had none */
	char grpc_message[ERR_MESSAGE_BYTES];
	int64_t retry_after_ns; /* from Retry-After or RetryInfo; 0 = none */
	char content_type[128];
	struct strbuf body; /* of a gRPC call: the one message; free with strbuf_free */
};

/*
 * One request, one whole answer of at most body_bytes_max. Fails with ERR_UNAVAILABLE or
 * ERR_DEADLINE if no answer arrives, with ERR_LIMIT if it is too large; an answer with any status
 * is a success of the call. `headers` is "name: value\r\n" lines (names in lower case) or NULL. For
 * gRPC, `body` is the message; the client frames it, and compresses it if `compress`. timeout_ns 0
 * means 30 s; resolving a host name may take longer.
 *
 * A streaming gRPC call has `next` instead of a body: it puts a message into the empty `out` and
 * returns 1, or 0 at the end, or a negative code, which ends the call with its error. It is not
 * called any more once the server has answered.
 */
struct net_call {
	const char *method;
	const char *path; /* with query */
	const char *content_type;
	const char *headers;
	struct slice body;
	int (*next)(void *context, struct strbuf *out, struct err *err);
	void *next_context;
	bool grpc;
	bool compress;
	int64_t timeout_ns;
	size_t body_bytes_max;
};
int net_client_call(struct net_client *client, const struct net_call *call, struct net_reply *ret,
		    struct err *err);

#endif
