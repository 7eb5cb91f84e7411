/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access - authentication and permissions: the file of --web-config-file, reloaded while the server
 * runs.
 *
 * Connections and requests check the file, and the files that it names, for changes, at most once a
 * second; a change takes effect at once. An invalid file changes nothing; the log and
 * firn_web_config_reloads_total{result="failed"} tell. TLS cannot be switched on or off, nor
 * authentication be removed.
 *
 * Passwords are bcrypt and take tens of milliseconds each: verdicts are remembered (as salted
 * digests), and unknown users cost as much as known ones. Thread-safe. The two callbacks have the
 * types that net/server.h asks for.
 */
#ifndef FIRN_SERVER_ACCESS_ACCESS_H
#define FIRN_SERVER_ACCESS_ACCESS_H

#include "net/server.h"
#include "net/tls.h"

#include "config/tenant_limits.h"

struct access;

/*
 * `own_token` (copied; may be NULL) is one more token, with the role ingest. Errors name the file,
 * the line and the remedy.
 */
int access_open(const char *path, const char *own_token, struct access **ret, struct err *err);
void access_close(struct access *access); /* accepts NULL */

bool access_has_tls(const struct access *access);
/* True if anyone who can connect may do everything. */
bool access_is_open(const struct access *access);

/* The headers that the file wants in each answer, "name: value\r\n" lines; as they were at open. */
struct slice access_headers(const struct access *access);

struct tls *access_tls(void *access);
int access_authorize(void *access, const struct net_request *request, enum net_role role,
		     bool at_once);
/*
 * True if an authenticated client also has this role: for answers that show more to some. NULL:
 * everyone may do everything. Not on the loop thread.
 */
bool access_permits(struct access *access, const struct net_request *request, enum net_role role);

/*
 * Tenants. If the file gives tenants to a user or token, these are its only ones: access_authorize
 * refuses (403) a header ACCESS_TENANT_HEADER that names another, and without the header a request
 * belongs to the first. For all other users and tokens the header decides.
 */
#define ACCESS_TENANT_HEADER "x-scope-orgid"

/*
 * The tenant of a request without the header; "": the nameless one. Lives as long as `access`,
 * which may be NULL. Not on the loop thread.
 */
struct slice access_own_tenant(struct access *access, const struct net_request *request);
/* True if who made the request may be this tenant. */
bool access_may_be(struct access *access, const struct net_request *request, struct slice tenant);

/* True if the file speaks of tenants. */
bool access_has_tenants(const struct access *access);

/* As the file is now; without one, or of a NULL `access`, there are none. */
void access_tenant_limits(struct access *access, struct slice tenant, struct tenant_limits *ret);
/* Calls for each tenant that the file gives limits, as it was when the server started. */
typedef void access_tenant_f(void *context, struct slice tenant,
			     const struct tenant_limits *limits);
void access_each_tenant(const struct access *access, access_tenant_f *each, void *context);

#endif
