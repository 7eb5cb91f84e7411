/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant - the tenant of a request, if the server runs with --tenants: the header X-Scope-OrgID, as
 * in Pyroscope, Mimir and Loki. Without the header it is the first tenant that the web
 * configuration gives to the user or token, else the tenant "", which also has everything stored
 * without --tenants. access.h refuses tenants that the web configuration does not allow before a
 * handler runs. Without a web configuration, a proxy has to set the header.
 *
 * Stored series get the label __tenant__ (ingest_scratch_set_tenant), which clients cannot set;
 * queries see one tenant's reports only (store_query.tenant).
 */
#ifndef FIRN_SERVER_SERVE_TENANT_H
#define FIRN_SERVER_SERVE_TENANT_H

#include "server/serve/serve.h"
#include "server/access/access.h"

#define TENANT_HEADER ACCESS_TENANT_HEADER
#define TENANT_BYTES_MAX TENANT_LIMITS_NAME_BYTES_MAX

/* Empty without --tenants. ERR_INVALID for a name that is none. Lives as long as the request. */
int tenant_of(const struct serve *serve, const struct net_request *request, struct slice *ret,
	      struct err *err);

#endif
