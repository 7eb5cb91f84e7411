/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn - one accepted connection: a libuv socket, a transport and an engine, and the rules for
 * moving bytes between them. Loop thread only.
 *
 *     SNIFFING -> SPEAKING -> (LINGERING) -> closed
 *
 * It reads nothing while output waits or the engine has not taken the received bytes, so memory
 * per connection stays at about one read and one write buffer.
 */
#ifndef FIRN_NET_CONN_H
#define FIRN_NET_CONN_H

#include <uv.h>

#include "net/address.h"
#include "net/http/engine.h"
#include "net/tls.h"

#define CONN_READ_BYTES (64u * 1024)

struct conn;

/* The server, as its connections see it. */
struct conn_owner {
	struct http_service *service;
	int64_t idle_timeout_ns;
	char *read_buffer;		   /* CONN_READ_BYTES, shared: reads are taken at once */
	struct tls *(*tls)(void *context); /* for a new connection; NULL: plain text */
	void *tls_context;
	bool (*submit)(struct engine_host *host, struct exchange *exchange);
	void (*closed)(struct conn_owner *owner, struct conn *conn); /* the last call for it */
	bool has_parked; /* set here: some connection waits for the budget */
};

enum conn_phase { CONN_SNIFFING, CONN_SPEAKING, CONN_LINGERING, CONN_CLOSING };

struct conn {
	uv_tcp_t tcp;
	uv_write_t write;
	uv_shutdown_t shutdown;
	struct conn_owner *owner;
	struct conn *next, *previous; /* the owner's list */
	struct conn *dirty_next;      /* the owner's: to be run */
	bool is_dirty;
	enum conn_phase phase;
	bool is_reading, is_writing, peer_ended;
	bool has_received; /* for TLS: its first bytes were checked */
	struct net_transport transport;
	struct engine_host host;
	struct engine *engine; /* NULL before the protocol is known, and after the end */
	struct strbuf pending; /* received, not taken */
	struct strbuf out;     /* pulled from the engine */
	struct slice wire;     /* sealed, not sent yet */
	struct pace write_pace;
	size_t write_left; /* of the wire bytes, when last looked at */
	int64_t phase_since_ns;
	char peer[ADDRESS_TEXT_BYTES];
	struct in6_addr network; /* the peer for its limit: an IPv4 address, or an IPv6 /64 */
};

/* Accepts from the listener; the connection is CLOSING when there was nothing to accept after all.
 */
struct conn *conn_accept(uv_stream_t *listener, struct conn_owner *owner);

/* Begins to read; before that, the connection may be turned away. */
void conn_begin(struct conn *conn);
void conn_turn_away(struct conn *conn, enum refusal refusal);

void conn_run(struct conn *conn);  /* after any event: moves the bytes that can be moved */
void conn_tick(struct conn *conn); /* ends what has timed out */
void conn_stop(struct conn *conn); /* ends it once its running requests are answered */
/* Since when it has been waiting for a request; INT64_MAX: one is running, or it is closing. */
int64_t conn_idle_since(const struct conn *conn);
void conn_close(struct conn *conn);

static inline struct conn *conn_of_engine(struct engine *engine)
{
	return (struct conn *)((char *)engine->host - offsetof(struct conn, host));
}

#endif
