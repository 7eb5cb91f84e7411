/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "net/address.h"

/* "https://host:port" without its scheme. */
static struct slice without_scheme(struct slice origin)
{
	static const char *const schemes[] = { "https://", "http://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (slice_starts_with(origin, slice_of(schemes[i])))
			return slice_tail(origin, strlen(schemes[i]));
	return origin;
}

/* "name:port" or "[address]:port" without its port. */
static void name_of(struct slice host, char ret[static ADDRESS_HOST_BYTES])
{
	bool is_bracketed = host.len && host.data[0] == '[';
	struct slice rest, name = host;

	if (is_bracketed)
		name = slice_cut(slice_tail(host, 1), ']', &rest);
	else
		name = slice_cut(host, ':', &rest);
	if (name.len >= ADDRESS_HOST_BYTES)
		name.len = 0;
	snprintf(ret, ADDRESS_HOST_BYTES, "%.*s", SLICE_FMT(name));
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

/* Whether nobody else could have made the name lead here. */
static bool is_safe_name(const struct serve *serve, struct slice host)
{
	char name[ADDRESS_HOST_BYTES];
	struct in6_addr address;

	name_of(host, name);
	if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 ||
	    !strcasecmp(name, "localhost") || is_own_name(name))
		return true;
	return name[0] && !strcasecmp(name, serve->external_host);
}

int origin_check(const struct serve *serve, const struct net_request *request, struct err *err)
{
	struct slice origin = net_request_header(request, "origin");
	struct slice host = net_request_header(request, "host");

	if (!origin.len)
		return 0;
	if (!host.len || !slice_equal(without_scheme(origin), host))
		return err_set(err, ERR_DENIED, "a page of \"%.*s\" may not do this",
			       SLICE_FMT(origin));
	if (serve->has_users || is_safe_name(serve, host))
		return 0;
	return err_set(err, ERR_DENIED,
		       "a page of \"%.*s\" may not do this: anybody could have made that name "
		       "lead here; if it is this server's, give --web-external-url",
		       SLICE_FMT(origin));
}
