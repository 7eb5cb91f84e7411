/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - the client's end of one connection, over TCP or a Unix socket. Each connect, read and
 * write has a deadline, and all bytes pass through the transport. One thread, except link_end_by.
 */
#ifndef FIRN_NET_CLIENT_LINK_H
#define FIRN_NET_CLIENT_LINK_H

#include "net/address.h"
#include "net/tls.h"

#define LINK_READ_BYTES (64u * 1024)
#define LINK_STOPS 2

struct link {
	int fd; /* -1: closed */
	struct net_transport transport;
	char text[ADDRESS_HOST_BYTES + 16]; /* "host:port" or a path, for messages */
	char *read_buffer;
	_Atomic int64_t end_by_ns; /* monotonic */
	const _Atomic bool
		*stops[LINK_STOPS]; /* a waiting call fails once one is set; NULL: none */
	bool is_at_end;		    /* the server has closed it, and a read beyond the end failed */
};

void link_init(struct link *link);
void link_close(struct link *link); /* may be opened again */

/* Limits all deadlines to `at_ns` from now on, also those of waiting calls. Any thread. */
void link_end_by(struct link *link, int64_t at_ns);

/*
 * Connects to the first address that answers, and makes a TLS session if `tls` is given.
 * ERR_UNAVAILABLE (ERR_DENIED: not trusted) names the address and the cause.
 */
int link_open(struct link *link, const struct address *address, struct tls *tls,
	      int64_t deadline_at_ns, struct err *err);

/*
 * Connects to a Unix socket. If the socket's queue is full, it retries until the deadline. Errors
 * as above.
 */
int link_open_local(struct link *link, const char *path, int64_t deadline_at_ns, struct err *err);

/*
 * Switches to TLS: the server's certificate must be for `host`. Errors as above; an error closes
 * the link.
 */
int link_secure(struct link *link, struct tls *tls, const char *host, int64_t deadline_at_ns,
		struct err *err);

/* Sends all of it. ERR_UNAVAILABLE, ERR_DEADLINE, or ERR_CANCELLED by link.stops. */
int link_send(struct link *link, struct slice plain, int64_t deadline_at_ns, struct err *err);

/*
 * Waits for bytes; *ret_plain lives until the next call. The end of the connection is
 * ERR_UNAVAILABLE. With a deadline in the past it does not wait: without bytes, ERR_DEADLINE.
 */
int link_receive(struct link *link, struct slice *ret_plain, int64_t deadline_at_ns,
		 struct err *err);

#endif
