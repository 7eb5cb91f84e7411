/* SPDX-License-Identifier: Apache-2.0 */
#include "config/http_access_config.h"

#include <strings.h>

#define ROW(name, kind, member)                                                                    \
	{                                                                                          \
		name, kind, offsetof(struct http_access_config, member) - BASE, NULL, NULL         \
	}

#define BASE offsetof(struct http_access_config, basic)
const struct field http_access_config_basic[] = {
	ROW("username", FIELD_TEXT, basic.username),
	ROW("username_file", FIELD_PATH, basic.username_file),
	ROW("password", FIELD_TEXT, basic.password),
	ROW("password_file", FIELD_PATH, basic.password_file),
	{ 0 },
};
#undef BASE
#define BASE offsetof(struct http_access_config, authorization)
const struct field http_access_config_authorization[] = {
	ROW("type", FIELD_TEXT, authorization.type),
	ROW("credentials", FIELD_TEXT, authorization.credentials),
	ROW("credentials_file", FIELD_PATH, authorization.credentials_file),
	{ 0 },
};
#undef BASE
#define TLS(name, kind, member) FIELD_AT(name, kind, struct http_tls_config, member)
const struct field http_access_config_tls[] = {
	TLS("ca", FIELD_TEXT, ca),
	TLS("ca_file", FIELD_PATH, ca_file),
	TLS("cert", FIELD_TEXT, cert),
	TLS("cert_file", FIELD_PATH, cert_file),
	TLS("key", FIELD_TEXT, key),
	TLS("key_file", FIELD_PATH, key_file),
	TLS("server_name", FIELD_TEXT, server_name),
	TLS("insecure_skip_verify", FIELD_BOOL, insecure_skip_verify),
	{ 0 },
};

#define OAUTH2(name, kind, member) FIELD_AT(name, kind, struct http_oauth2_config, member)
const struct field http_access_config_oauth2[] = {
	OAUTH2("client_id", FIELD_TEXT, client_id),
	OAUTH2("client_secret", FIELD_TEXT, client_secret),
	OAUTH2("client_secret_file", FIELD_PATH, client_secret_file),
	OAUTH2("scopes", FIELD_TEXTS, scopes),
	OAUTH2("token_url", FIELD_TEXT, token_url),
	OAUTH2("endpoint_params", FIELD_PAIRS, endpoint_params),
	OAUTH2("proxy_url", FIELD_TEXT, proxy_url),
	{ "tls_config", FIELD_MAP, offsetof(struct http_oauth2_config, tls), http_access_config_tls,
	  NULL },
	{ 0 },
};

static const char *why_bad_tls(const struct http_tls_config *tls)
{
	if ((tls->cert.len || tls->cert_file.len) != (tls->key.len || tls->key_file.len))
		return "tls_config: a certificate needs its key, and the other way round";
	return NULL;
}

static bool is_http(struct slice url)
{
	return slice_starts_with(url, SLICE_LITERAL("http://")) ||
	       slice_starts_with(url, SLICE_LITERAL("https://"));
}

static const char *why_bad_proxy(struct slice proxy_url)
{
	if (proxy_url.len && !slice_starts_with(proxy_url, SLICE_LITERAL("http://")))
		return "proxy_url: it has to begin with http://";
	return NULL;
}

static bool has_oauth2(const struct http_oauth2_config *oauth2)
{
	return oauth2->client_id.len || oauth2->client_secret.len ||
	       oauth2->client_secret_file.len || oauth2->token_url.len;
}

static const char *why_bad_oauth2(const struct http_oauth2_config *oauth2)
{
	const char *why = why_bad_tls(&oauth2->tls);

	if (!has_oauth2(oauth2))
		return NULL;
	if (!oauth2->client_id.len)
		return "oauth2: \"client_id\" is missing";
	if (!is_http(oauth2->token_url))
		return "oauth2: \"token_url\" has to begin with http:// or https://";
	if (!oauth2->client_secret.len == !oauth2->client_secret_file.len)
		return "oauth2: one of client_secret and client_secret_file goes";
	return why ? why : why_bad_proxy(oauth2->proxy_url);
}

static const char *why_bad(const struct http_access_config *access)
{
	bool basic = access->basic.username.len || access->basic.username_file.len;
	bool bearer = access->bearer_token.len || access->bearer_token_file.len;
	bool other = access->authorization.type.len || access->authorization.credentials.len ||
		     access->authorization.credentials_file.len;
	bool oauth2 = has_oauth2(&access->oauth2);
	struct slice type = access->authorization.type;
	const char *why;

	if (basic + bearer + other + oauth2 > 1)
		return "at most one of basic_auth, authorization, bearer_token, "
		       "bearer_token_file and oauth2 goes";
	if (access->bearer_token.len && access->bearer_token_file.len)
		return "at most one of bearer_token and bearer_token_file goes";
	if (access->basic.username.len && access->basic.username_file.len)
		return "at most one of username and username_file goes";
	if (access->basic.password.len && access->basic.password_file.len)
		return "at most one of password and password_file goes";
	if (access->authorization.credentials.len && access->authorization.credentials_file.len)
		return "at most one of credentials and credentials_file goes";
	if (type.len == strlen("basic") && !strncasecmp(type.data, "basic", type.len))
		return "authorization: the type Basic has basic_auth";
	why = why_bad_tls(&access->tls);
	if (!why)
		why = why_bad_proxy(access->proxy_url);
	return why ? why : why_bad_oauth2(&access->oauth2);
}

int http_access_config_check(const struct fields_reader *reader,
			     const struct http_access_config *access, const struct yaml_node_s *at,
			     struct err *err)
{
	const char *why = why_bad(access);

	return why ? document_error(reader->document, at, err, "%s", why) : 0;
}
