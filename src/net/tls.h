/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls - TLS 1.2 and 1.3 for both ends of a connection, by OpenSSL between two memory buffers.
 *
 * A `struct tls` is one side's certificates and rules: immutable, counted references, any thread.
 * A session is a transport (net/transport.h) made from one; it belongs to the thread that owns the
 * connection and keeps its `struct tls` alive. Errors: ERR_INVALID names what is wrong with the
 * given certificates; ERR_DENIED says why the peer was not trusted; ERR_UNAVAILABLE means that the
 * peer does not speak TLS or closed the connection.
 */
#ifndef FIRN_NET_TLS_H
#define FIRN_NET_TLS_H

#include "base/strbuf.h"
#include "net/transport.h"

struct tls;

/* PEM text and where it came from, for messages. */
struct tls_pem {
	struct slice text; /* empty: not given */
	const char *where;
};

/* The values of Prometheus' web configuration, least strict first. */
enum tls_client_auth {
	TLS_CLIENT_NONE,
	TLS_CLIENT_REQUEST, /* requested, not verified */
	TLS_CLIENT_REQUIRE_ANY,
	TLS_CLIENT_VERIFY_IF_GIVEN,
	TLS_CLIENT_REQUIRE_AND_VERIFY,
};

enum tls_version { TLS_VERSION_DEFAULT, TLS_VERSION_12, TLS_VERSION_13 };

struct tls_server_options {
	struct tls_pem certificate, key; /* the chain, leaf first */
	struct tls_pem client_ca;
	enum tls_client_auth client_auth;
	const struct slice *client_names; /* one of these must be a subject alternative name of a */
	size_t client_names_count;	  /* verified client; none: any */
	enum tls_version min_version;	  /* default 1.2 */
	enum tls_version max_version;	  /* default the newest */
	bool http1_only;
};
int tls_server_new(const struct tls_server_options *options, struct tls **ret, struct err *err);

struct tls_client_options {
	struct tls_pem ca;		 /* not given: the system's certificates */
	struct tls_pem certificate, key; /* not given: no client certificate */
	bool trusts_everyone;
	bool http1_only; /* else HTTP/2 is required */
};
int tls_client_new(const struct tls_client_options *options, struct tls **ret, struct err *err);

/* Reads a PEM file into `out`, which *ret borrows. */
int tls_read_pem(const char *path, struct strbuf *out, struct tls_pem *ret, struct err *err);

struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls); /* accepts NULL */

/* The server's side of a new connection. */
void tls_accept(struct tls *tls, struct net_transport *ret);

/*
 * The client's side; the certificate must be for `host`, a name or an address. The caller continues
 * the handshake with net_transport_seal (of nothing) and net_transport_open until
 * tls_is_established.
 */
int tls_connect(struct tls *tls, const char *host, struct net_transport *ret, struct err *err);

/* True if the handshake is over; true for plain text. */
bool tls_is_established(const struct net_transport *transport);

#endif
