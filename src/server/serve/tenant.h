/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant - whose a request is, when the server runs with --tenants: the header X-Scope-OrgID, as
 * Pyroscope, Mimir and Loki have it. Without the header it is the first tenant that the web
 * configuration gives to the user or token, else the tenant "", as is what was stored without
 * --tenants. Which other tenants a client may be says the web configuration, too: access.h refuses
 * the rest before a handler runs. Without it a proxy has to say, which sets the header.
 *
 * What comes in gets the label __tenant__ (ingest_scratch_set_tenant); queries see one tenant's
 * reports alone (store_query.tenant). Clients can give no such label.
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
