/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "net/server.h"

static int bad_address(struct slice text, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "address \"%.*s\": %s (write HOST:PORT or [IPV6]:PORT)",
		       SLICE_FMT(text), why);
}

int address_parse(struct slice text, struct address *ret, struct err *err)
{
	size_t colon = text.len;
	struct slice host;
	struct slice port;
	uint64_t number;

	while (colon && text.data[colon - 1] != ':')
		colon--;
	if (!colon)
		return bad_address(text, "no port", err);
	host = slice_from(text.data, colon - 1);
	port = slice_tail(text, colon);
	if (!slice_parse_u64(port, &number) || number > UINT16_MAX)
		return bad_address(text, "the port is not a number from 0 to 65535", err);
	if (host.len >= 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
		host = slice_from(host.data + 1, host.len - 2);
	else if (slice_find_byte(host, ':') != SIZE_MAX)
		return bad_address(text, "an IPv6 address needs brackets", err);
	if (host.len >= sizeof(ret->host) || (host.len && memchr(host.data, '\0', host.len)))
		return bad_address(text, "the host is no name", err);
	memset(ret, 0, sizeof(*ret));
	if (host.len)
		memcpy(ret->host, host.data, host.len);
	ret->port = (uint16_t)number;
	return 0;
}

static bool parse_number(const char *host, uint16_t port, union address_socket *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &ret->ip4.sin_addr) == 1) {
		ret->ip4.sin_family = AF_INET;
		ret->ip4.sin_port = htons(port);
		return true;
	}
	if (inet_pton(AF_INET6, host, &ret->ip6.sin6_addr) == 1) {
		ret->ip6.sin6_family = AF_INET6;
		ret->ip6.sin6_port = htons(port);
		return true;
	}
	return false;
}

static int resolve_name(const struct address *address, union address_socket *ret, size_t *ret_count,
			struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *found = NULL;
	size_t count = 0;
	char port[8];
	int code;

	snprintf(port, sizeof(port), "%u", address->port);
	code = getaddrinfo(address->host, port, &hints, &found);
	if (code)
		return err_set(err, ERR_UNAVAILABLE, "resolve \"%s\": %s", address->host,
			       gai_strerror(code));
	for (struct addrinfo *info = found; info && count < ADDRESS_CHOICES_MAX;
	     info = info->ai_next) {
		if (info->ai_addrlen <= sizeof(ret[count]))
			memcpy(&ret[count++], info->ai_addr, info->ai_addrlen);
	}
	freeaddrinfo(found);
	if (!count)
		return err_set(err, ERR_UNAVAILABLE, "resolve \"%s\": no address", address->host);
	*ret_count = count;
	return 0;
}

int address_resolve(const struct address *address, union address_socket *ret, size_t *ret_count,
		    struct err *err)
{
	const char *host = address->host;

	if (!host[0])
		host = "::";
	else if (!strcasecmp(host, "localhost"))
		host = "127.0.0.1";
	if (!parse_number(host, address->port, &ret[0]))
		return resolve_name(address, ret, ret_count, err);
	*ret_count = 1;
	return 0;
}

socklen_t address_socket_bytes(const union address_socket *socket)
{
	return socket->any.sa_family == AF_INET6 ? sizeof(socket->ip6) : sizeof(socket->ip4);
}

unsigned address_socket_port(const union address_socket *socket)
{
	return ntohs(socket->any.sa_family == AF_INET6 ? socket->ip6.sin6_port
						       : socket->ip4.sin_port);
}

struct in6_addr address_network(const union address_socket *socket)
{
	struct in6_addr network = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (socket->any.sa_family == AF_INET6) {
		network = socket->ip6.sin6_addr;
		if (!IN6_IS_ADDR_V4MAPPED(&network))
			memset(&network.s6_addr[8], 0, 8);
	} else {
		memcpy(&network.s6_addr[12], &socket->ip4.sin_addr, 4);
	}
	return network;
}

void address_format(const union address_socket *socket, char ret[static ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "?";
	bool is_ip6 = socket->any.sa_family == AF_INET6;
	const void *address =
		is_ip6 ? (const void *)&socket->ip6.sin6_addr : (const void *)&socket->ip4.sin_addr;

	inet_ntop(socket->any.sa_family, address, host, sizeof(host));
	snprintf(ret, ADDRESS_TEXT_BYTES, is_ip6 ? "[%s]:%u" : "%s:%u", host,
		 address_socket_port(socket));
}

bool net_address_is_loopback(const char *text)
{
	union address_socket socket;
	struct address address;

	if (address_parse(slice_of(text), &address, NULL))
		return false;
	if (!strcasecmp(address.host, "localhost"))
		return true;
	if (!parse_number(address.host, 0, &socket))
		return false;
	if (socket.any.sa_family == AF_INET)
		return ntohl(socket.ip4.sin_addr.s_addr) >> 24 == 127;
	if (IN6_IS_ADDR_V4MAPPED(&socket.ip6.sin6_addr))
		return socket.ip6.sin6_addr.s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(&socket.ip6.sin6_addr);
}
