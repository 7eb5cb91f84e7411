/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/tenant.h"

int tenant_of(const struct serve *serve, const struct net_request *request, struct slice *ret,
	      struct err *err)
{
	struct slice name = net_request_header(request, TENANT_HEADER);

	*ret = (struct slice){ "", 0 };
	if (!serve->tenants)
		return 0;
	if (!tenant_limits_is_name(name))
		return err_set(err, ERR_INVALID,
			       "header X-Scope-OrgID: a tenant has at most %u letters, digits and "
			       "!-_.*'()",
			       TENANT_BYTES_MAX);
	*ret = name.len ? name : access_own_tenant(serve->access, request);
	return 0;
}
