/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address - from "HOST:PORT", as people write it, to socket addresses and back.
 */
#ifndef FIRN_NET_ADDRESS_H
#define FIRN_NET_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/slice.h"

#define ADDRESS_HOST_BYTES 254 /* a DNS name and a NUL */
#define ADDRESS_TEXT_BYTES 64  /* "[IPv6%scope]:port" and a NUL */
#define ADDRESS_CHOICES_MAX 8  /* addresses of one name that are tried */

struct address {
	char host[ADDRESS_HOST_BYTES]; /* without brackets; "" = every interface */
	uint16_t port;
};

union address_socket {
	struct sockaddr any;
	struct sockaddr_in ip4;
	struct sockaddr_in6 ip6;
	struct sockaddr_storage storage;
};

/* "127.0.0.1:7070", "[::1]:0", ":7070", "name:7070". */
int address_parse(struct slice text, struct address *ret, struct err *err);

/*
 * Socket addresses of the host, at most ADDRESS_CHOICES_MAX, in the order to be tried. Numbers and
 * "localhost" need no resolver; names may block for as long as the system's resolver does.
 */
int address_resolve(const struct address *address, union address_socket *ret, size_t *ret_count,
		    struct err *err);

socklen_t address_socket_bytes(const union address_socket *socket);
unsigned address_socket_port(const union address_socket *socket);

/* The network that counts as one peer: an IPv4 address (mapped to IPv6), or the /64 of an IPv6 one.
 */
struct in6_addr address_network(const union address_socket *socket);
void address_format(const union address_socket *socket, char ret[static ADDRESS_TEXT_BYTES]);

#endif
