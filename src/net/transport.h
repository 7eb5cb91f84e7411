/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport - the seam through which all bytes of a connection pass, server's and client's.
 *
 * A transport turns wire bytes into application bytes and back without touching a socket; whoever
 * owns the socket moves the wire bytes. Plain text, the one kind there is, has no operations and
 * copies nothing. TLS will be a second kind: a session between two memory BIOs, whose handshake
 * bytes come out of seal calls with nothing to seal.
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
	void (*free)(struct net_transport *transport);
};

struct net_transport {
	const struct net_transport_ops *ops; /* NULL: plain text */
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

static inline void net_transport_free(struct net_transport *transport)
{
	if (transport->ops)
		transport->ops->free(transport);
}

#endif
