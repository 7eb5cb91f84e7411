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
#define BASE offsetof(struct http_access_config, tls)
const struct field http_access_config_tls[] = {
	ROW("ca", FIELD_TEXT, tls.ca),
	ROW("ca_file", FIELD_PATH, tls.ca_file),
	ROW("cert", FIELD_TEXT, tls.cert),
	ROW("cert_file", FIELD_PATH, tls.cert_file),
	ROW("key", FIELD_TEXT, tls.key),
	ROW("key_file", FIELD_PATH, tls.key_file),
	ROW("server_name", FIELD_TEXT, tls.server_name),
	ROW("insecure_skip_verify", FIELD_BOOL, tls.insecure_skip_verify),
	{ 0 },
};
#undef BASE

static const char *why_bad(const struct http_access_config *access)
{
	bool basic = access->basic.username.len || access->basic.username_file.len;
	bool bearer = access->bearer_token.len || access->bearer_token_file.len;
	bool other = access->authorization.type.len || access->authorization.credentials.len ||
		     access->authorization.credentials_file.len;
	struct slice type = access->authorization.type;

	if (basic + bearer + other > 1)
		return "at most one of basic_auth, authorization, bearer_token and "
		       "bearer_token_file goes";
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
	if ((access->tls.cert.len || access->tls.cert_file.len) !=
	    (access->tls.key.len || access->tls.key_file.len))
		return "tls_config: a certificate needs its key, and the other way round";
	if (access->tls.server_name.len)
		return "tls_config: server_name is not supported: name the target as its "
		       "certificate does";
	return NULL;
}

int http_access_config_check(const struct fields_reader *reader,
			     const struct http_access_config *access, const struct yaml_node_s *at,
			     struct err *err)
{
	const char *why = why_bad(access);

	return why ? document_error(reader->document, at, err, "%s", why) : 0;
}
