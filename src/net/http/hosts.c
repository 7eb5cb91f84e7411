/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/hosts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/server.h"

/* "name:port", "[address]:port", either without its port; a last dot says no more. */
static bool read_name(struct slice host, char ret[static ADDRESS_HOST_BYTES])
{
	struct slice name, rest = { 0 };

	if (host.len && host.data[0] == '[') {
		size_t end = slice_find_byte(host, ']');

		if (end == SIZE_MAX)
			return false;
		name = slice_from(host.data + 1, end - 1);
		rest = slice_tail(host, end + 1);
		if (rest.len && rest.data[0] != ':')
			return false;
	} else {
		size_t colon = slice_find_byte(host, ':');

		name = host;
		if (colon != SIZE_MAX) {
			name.len = colon;
			rest = slice_tail(host, colon);
		}
	}
	for (size_t i = 1; i < rest.len; i++)
		if (rest.data[i] < '0' || rest.data[i] > '9')
			return false;
	if (name.len > 1 && name.data[name.len - 1] == '.')
		name.len--;
	if (!name.len || name.len >= ADDRESS_HOST_BYTES || memchr(name.data, '\0', name.len))
		return false;
	snprintf(ret, ADDRESS_HOST_BYTES, "%.*s", SLICE_FMT(name));
	return true;
}

/* An address as 16 bytes, IPv4 as IPv6 has it. */
static bool read_address(const char *name, struct in6_addr *ret)
{
	struct in_addr ip4;

	if (inet_pton(AF_INET6, name, ret) == 1)
		return true;
	if (inet_pton(AF_INET, name, &ip4) != 1)
		return false;
	*ret = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(&ret->s6_addr[12], &ip4, sizeof(ip4));
	return true;
}

static bool is_loopback(const struct in6_addr *address)
{
	return IN6_IS_ADDR_V4MAPPED(address) ? address->s6_addr[12] == 127
					     : IN6_IS_ADDR_LOOPBACK(address);
}

/* Names and addresses are equal however they are written. */
static bool is_same(const char *a, const char *b)
{
	struct in6_addr left, right;

	if (read_address(a, &left))
		return read_address(b, &right) && !memcmp(&left, &right, sizeof(left));
	return !strcasecmp(a, b);
}

static void add(struct hosts *hosts, const char *name)
{
	mem_grow(hosts->names, hosts->names_count, hosts->names_capacity);
	hosts->names[hosts->names_count++] = mem_strndup(name, strlen(name));
}

int hosts_init(struct hosts *hosts, const char *listen_address, struct err *err)
{
	struct in6_addr number = { 0 };
	struct address address;
	bool is_number;
	int rc = address_parse(slice_of(listen_address), &address, err);

	*hosts = (struct hosts){ 0 };
	if (rc)
		return rc;
	is_number = !address.host[0] || read_address(address.host, &number);
	hosts->any_address = !net_address_is_loopback(listen_address) &&
			     (!is_number || IN6_IS_ADDR_UNSPECIFIED(&number) ||
			      is_same(address.host, "0.0.0.0"));
	if (address.host[0])
		add(hosts, address.host);
	return 0;
}

void hosts_free(struct hosts *hosts)
{
	for (size_t i = 0; i < hosts->names_count; i++)
		free(hosts->names[i]);
	free(hosts->names);
	*hosts = (struct hosts){ 0 };
}

int hosts_add(struct hosts *hosts, struct slice name, struct err *err)
{
	char text[ADDRESS_HOST_BYTES];
	struct in6_addr address;

	if (name.len < sizeof(text))
		snprintf(text, sizeof(text), "%.*s", SLICE_FMT(name));
	if (slice_is(name, "*"))
		hosts->any = true;
	else if (name.len < sizeof(text) && read_address(text, &address))
		add(hosts, text);
	else if (read_name(name, text))
		add(hosts, text);
	else
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not a host name (write NAME, an address, or *)",
			       SLICE_FMT(name));
	return 0;
}

/* This machine's own name, as it is or without its domain: with another one it is anybody's. */
static bool is_own_name(const char *name)
{
	char own[ADDRESS_HOST_BYTES] = "";

	if (gethostname(own, sizeof(own) - 1) || !own[0])
		return false;
	if (!strcasecmp(name, own))
		return true;
	own[strcspn(own, ".")] = '\0';
	return !strcasecmp(name, own);
}

bool hosts_permit(const struct hosts *hosts, struct slice host)
{
	char name[ADDRESS_HOST_BYTES];
	struct in6_addr address;

	if (hosts->any)
		return true;
	if (!read_name(host, name))
		return false;
	if (!strcasecmp(name, "localhost"))
		return true;
	if (read_address(name, &address) && (hosts->any_address || is_loopback(&address)))
		return true;
	for (size_t i = 0; i < hosts->names_count; i++)
		if (is_same(hosts->names[i], name))
			return true;
	return is_own_name(name);
}
