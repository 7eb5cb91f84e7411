/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport - the interface through which all bytes of a connection pass, on both sides.
 *
 * A transport turns wire bytes into application bytes and back without touching a socket; the
 * owner of the socket moves the wire bytes. Plain text has no operations and copies nothing. TLS
 * (net/tls.h) is the other kind: its own bytes (handshake, alerts, tickets) are returned by seal
 * with nothing to seal, which the owner must call after each open, also after a failed one.
 *
 * One owner, one thread. Zero-initialised is plain text.
 */
#ifndef FIRN_NET_TRANSPORT_H
#define FIRN_NET_TRANSPORT_H

#include "base/err.h"
#include "base/slice.h"

struct net_transport;

struct net_transport_ops {
	/* Takes bytes from the wire; *ret_plain (maybe empty) lives until the next open. */
	int (*open)(struct net_transport *transport, struct slice wire, struct slice *ret_plain,
		    struct err *err);
	/* Takes bytes for the wire; *ret_wire (maybe empty) lives until the next seal. */
	int (*seal)(struct net_transport *transport, struct slice plain, struct slice *ret_wire,
		    struct err *err);
	/* Ends the session: *ret_wire (a closing alert) lives until the next call. */
	void (*end)(struct net_transport *transport, struct slice *ret_wire);
	void (*free)(struct net_transport *transport);
};

struct net_transport {
	const struct net_transport_ops *ops; /* NULL: plain text */
	void *session;
};

static inline int net_transport_open(struct net_transport *transport, struct slice wire,
				     struct slice *ret_plain, struct err *err)
{
	if (transport->ops)
		return transport->ops->open(transport, wire, ret_plain, err);
	*ret_plain = wire;
	return 0;
}

static inline int net_transport_seal(struct net_transport *transport, struct slice plain,
				     struct slice *ret_wire, struct err *err)
{
	if (transport->ops)
		return transport->ops->seal(transport, plain, ret_wire, err);
	*ret_wire = plain;
	return 0;
}

static inline struct slice net_transport_end(struct net_transport *transport)
{
	struct slice wire = { 0 };

	if (transport->ops)
		transport->ops->end(transport, &wire);
	return wire;
}

static inline void net_transport_free(struct net_transport *transport)
{
	if (transport->ops)
		transport->ops->free(transport);
}

#endif
