/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_config - the file of --web-config-file: TLS, users and tokens of the server.
 *
 * The format is that of Prometheus' exporter-toolkit (docs/web-configuration.md there), with roles
 * and bearer tokens added:
 *
 *   tls_server_config:   { cert_file, key_file, client_ca_file, client_auth_type, ... }
 *   http_server_config:  { http2, headers }
 *   basic_auth_users:    { NAME: BCRYPT }
 *   user_roles:          { NAME: [ingest, query, admin] }      (firn's; without: all)
 *   bearer_tokens:       [{ name, token_file | sha256, roles, tenants }] (firn's)
 *   user_tenants:        { NAME: [TENANT, ...] }               (firn's; without: any)
 *   tenant_limits:       { TENANT: { ... } }                   (firn's; tenant_limits.h)
 *
 * Relative paths are relative to the file. A setting that firn does not support is an error. Plain
 * data: only the file itself is opened here. All text lives in the arena.
 */
#ifndef FIRN_CONFIG_WEB_CONFIG_H
#define FIRN_CONFIG_WEB_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "config/tenant_limits.h"

#define WEB_CONFIG_SHA256_BYTES 32

enum web_config_role {
	WEB_CONFIG_INGEST = 1,
	WEB_CONFIG_QUERY = 2,
	WEB_CONFIG_ADMIN = 4, /* includes the others */
};

/* The values of net/tls.h. */
enum web_config_client_auth {
	WEB_CONFIG_NO_CLIENT_CERT,
	WEB_CONFIG_REQUEST_CLIENT_CERT,
	WEB_CONFIG_REQUIRE_ANY_CLIENT_CERT,
	WEB_CONFIG_VERIFY_CLIENT_CERT_IF_GIVEN,
	WEB_CONFIG_REQUIRE_AND_VERIFY_CLIENT_CERT,
};

/* PEM text, or the path of a PEM file. */
struct web_config_pem {
	struct slice text, file;
};

/* The tenants that a user or token may act for; the first is the default. NULL: any tenant. */
struct web_config_tenants {
	struct slice *names;
	size_t count;
};

struct web_config_user {
	struct slice name, bcrypt;
	unsigned roles;
	struct web_config_tenants tenants;
};

struct web_config_token {
	struct slice name;
	struct slice file; /* the file with the token; if empty, `sha256` is used */
	uint8_t sha256[WEB_CONFIG_SHA256_BYTES];
	unsigned roles;
	struct web_config_tenants tenants;
};

struct web_config_header {
	struct slice name, value; /* name in lower case */
};

struct web_config {
	struct arena arena;
	bool has_tls;
	struct web_config_pem certificate, key, client_ca;
	enum web_config_client_auth client_auth;
	struct slice *client_sans;
	size_t client_sans_count;
	int min_version, max_version; /* 12, 13; 0 = not given */
	bool http1_only;
	struct web_config_header *headers;
	size_t headers_count;
	struct web_config_user *users;
	size_t users_count;
	struct web_config_token *tokens;
	size_t tokens_count;
	struct tenant_limits_list tenant_limits;
};

/* Errors are ERR_INVALID "FILE:LINE: ...", or the file cannot be read. */
int web_config_load(const char *path, struct web_config *ret, struct err *err);
/* The same of a text; `path` is for messages and relative paths. */
int web_config_parse(struct slice text, const char *path, struct web_config *ret, struct err *err);
void web_config_free(struct web_config *config);

#endif
