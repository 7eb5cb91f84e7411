/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/tenant.h"

#include <string.h>

static bool is_plain(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.data[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    (!c || !strchr("!-_.*'()", c)))
			return false;
	}
	return true;
}

int tenant_of(const struct serve *serve, const struct net_request *request, struct slice *ret,
	      struct err *err)
{
	struct slice name = net_request_header(request, TENANT_HEADER);

	*ret = (struct slice){ "", 0 };
	if (!serve->tenants)
		return 0;
	if (name.len > TENANT_BYTES_MAX || !is_plain(name))
		return err_set(err, ERR_INVALID,
			       "header X-Scope-OrgID: a tenant has at most %u letters, digits and "
			       "!-_.*'()",
			       TENANT_BYTES_MAX);
	*ret = name;
	return 0;
}
