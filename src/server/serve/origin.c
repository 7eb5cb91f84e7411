/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/origin.h"

#include <string.h>

/* "https://host:port" without its scheme. */
static struct slice without_scheme(struct slice origin)
{
	static const char *const schemes[] = { "https://", "http://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (slice_starts_with(origin, slice_of(schemes[i])))
			return slice_tail(origin, strlen(schemes[i]));
	return origin;
}

int origin_check(const struct net_request *request, struct err *err)
{
	struct slice origin = net_request_header(request, "origin");
	struct slice host = net_request_header(request, "host");

	if (!origin.len)
		return 0;
	if (!host.len || !slice_equal(without_scheme(origin), host))
		return err_set(err, ERR_DENIED, "a page of \"%.*s\" may not do this",
			       SLICE_FMT(origin));
	return 0;
}
