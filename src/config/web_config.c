/* SPDX-License-Identifier: Apache-2.0 */
#include "config/web_config.h"

#include <ctype.h>

#include "base/whole_file.h"
#include "config/document.h"

#define ALL_ROLES (WEB_CONFIG_INGEST | WEB_CONFIG_QUERY | WEB_CONFIG_ADMIN)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct reading {
	struct web_config *config;
	struct document *document;
	struct slice directory; /* of the file, with the slash; or empty */
	size_t capacity;	/* of the list being read */
	struct web_config_token *token;
	bool has_sha256;
};

/* One more element of a list in the arena, zeroed. */
static void *add(struct reading *reading, void *list_of_pointer, size_t size, size_t *count)
{
	void **list = list_of_pointer;

	if (*count == reading->capacity) {
		void *old = *list;

		reading->capacity = reading->capacity ? 2 * reading->capacity : 8;
		*list = arena_alloc_array(&reading->config->arena, reading->capacity, size);
		if (*count)
			memcpy(*list, old, *count * size);
	}
	return (char *)*list + (*count)++ * size;
}

static int take_text(struct reading *reading, const struct yaml_node_s *value, struct slice *ret,
		     struct err *err)
{
	int rc = document_text(reading->document, value, ret, err);

	if (!rc)
		*ret = arena_copy(&reading->config->arena, *ret);
	return rc;
}

static int take_path(struct reading *reading, const struct yaml_node_s *value, struct slice *ret,
		     struct err *err)
{
	struct strbuf path = { 0 };
	int rc = document_text(reading->document, value, ret, err);

	if (rc)
		return rc;
	if (ret->len && ret->data[0] != '/')
		strbuf_add_slice(&path, reading->directory);
	strbuf_add_slice(&path, *ret);
	*ret = arena_copy(&reading->config->arena, strbuf_slice(&path));
	strbuf_free(&path);
	return 0;
}

/* Which of the words the text is. */
static int take_word(struct reading *reading, const struct yaml_node_s *value,
		     const char *const *words, size_t count, int *ret, struct err *err)
{
	struct strbuf known = { 0 };
	struct slice text;
	int rc = document_text(reading->document, value, &text, err);

	for (size_t i = 0; !rc && i < count; i++) {
		if (slice_is(text, words[i])) {
			*ret = (int)i;
			strbuf_free(&known);
			return 0;
		}
		strbuf_addf(&known, "%s%s", i ? ", " : "", words[i]);
	}
	if (!rc)
		rc = document_error(reading->document, value, err, "\"%.*s\" is not one of: %s",
				    SLICE_FMT(text), strbuf_text(&known));
	strbuf_free(&known);
	return rc;
}

/* tls_server_config */

#define TAKE_TEXT(function, member)                                                                \
	static int function(void *context, const struct yaml_node_s *value, struct err *err)       \
	{                                                                                          \
		struct reading *reading = context;                                                 \
                                                                                                   \
		return take_text(reading, value, &reading->config->member, err);                   \
	}
#define TAKE_PATH(function, member)                                                                \
	static int function(void *context, const struct yaml_node_s *value, struct err *err)       \
	{                                                                                          \
		struct reading *reading = context;                                                 \
                                                                                                   \
		return take_path(reading, value, &reading->config->member, err);                   \
	}
TAKE_TEXT(take_certificate, certificate.text)
TAKE_PATH(take_certificate_file, certificate.file)
TAKE_TEXT(take_key, key.text)
TAKE_PATH(take_key_file, key.file)
TAKE_TEXT(take_client_ca, client_ca.text)
TAKE_PATH(take_client_ca_file, client_ca.file)

static int take_client_auth(void *context, const struct yaml_node_s *value, struct err *err)
{
	static const char *const types[] = {
		[WEB_CONFIG_NO_CLIENT_CERT] = "NoClientCert",
		[WEB_CONFIG_REQUEST_CLIENT_CERT] = "RequestClientCert",
		[WEB_CONFIG_REQUIRE_ANY_CLIENT_CERT] = "RequireAnyClientCert",
		[WEB_CONFIG_VERIFY_CLIENT_CERT_IF_GIVEN] = "VerifyClientCertIfGiven",
		[WEB_CONFIG_REQUIRE_AND_VERIFY_CLIENT_CERT] = "RequireAndVerifyClientCert",
	};
	struct reading *reading = context;
	int type;
	int rc = take_word(reading, value, types, COUNT_OF(types), &type, err);

	if (!rc)
		reading->config->client_auth = (enum web_config_client_auth)type;
	return rc;
}

static int take_san(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct reading *reading = context;
	struct web_config *config = reading->config;
	struct slice *san = add(reading, &config->client_sans, sizeof(*config->client_sans),
				&config->client_sans_count);

	return take_text(reading, item, san, err);
}

static int take_sans(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	reading->capacity = 0;
	return document_each_item(reading->document, value, take_san, reading, err);
}

static int take_version(struct reading *reading, const struct yaml_node_s *value, int *ret,
			struct err *err)
{
	static const char *const versions[] = { "TLS12", "TLS13", "TLS11", "TLS10" };
	int version;
	int rc = take_word(reading, value, versions, 2, &version, err);

	if (!rc)
		*ret = 12 + version;
	return rc;
}

static int take_min_version(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_version(reading, value, &reading->config->min_version, err);
}

static int take_max_version(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_version(reading, value, &reading->config->max_version, err);
}

static int refuse_choice(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return document_error(
		reading->document, value, err,
		"cannot be chosen: firn offers the suites and curves that authenticate "
		"and keep past traffic secret; remove the key");
}

static int ignore_preference(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;
	bool unused;

	return document_bool(reading->document, value, &unused, err);
}

static int check_pem(const struct reading *reading, const struct yaml_node_s *map,
		     const struct web_config_pem *pem, const char *name, bool is_needed,
		     struct err *err)
{
	if (pem->text.len && pem->file.len)
		return document_error(reading->document, map, err,
				      "%s and %s_file: only one can be", name, name);
	if (is_needed && !pem->text.len && !pem->file.len)
		return document_error(
			reading->document, map, err,
			"tls_server_config needs cert_file and key_file: %s_file is missing", name);
	return 0;
}

static int take_tls(void *context, const struct yaml_node_s *value, struct err *err)
{
	static const struct document_key keys[] = {
		{ "cert", take_certificate },
		{ "cert_file", take_certificate_file },
		{ "key", take_key },
		{ "key_file", take_key_file },
		{ "client_ca", take_client_ca },
		{ "client_ca_file", take_client_ca_file },
		{ "client_auth_type", take_client_auth },
		{ "client_allowed_sans", take_sans },
		{ "min_version", take_min_version },
		{ "max_version", take_max_version },
		{ "cipher_suites", refuse_choice },
		{ "curve_preferences", refuse_choice },
		{ "prefer_server_cipher_suites", ignore_preference },
	};
	struct reading *reading = context;
	struct web_config *config = reading->config;
	bool verifies;
	int rc = document_take_map(reading->document, value, keys, COUNT_OF(keys), reading, err);

	config->has_tls = true;
	if (!rc)
		rc = check_pem(reading, value, &config->certificate, "cert", true, err);
	if (!rc)
		rc = check_pem(reading, value, &config->key, "key", true, err);
	if (!rc)
		rc = check_pem(reading, value, &config->client_ca, "client_ca", false, err);
	if (rc)
		return rc;
	verifies = config->client_auth >= WEB_CONFIG_VERIFY_CLIENT_CERT_IF_GIVEN;
	if (verifies != (config->client_ca.text.len || config->client_ca.file.len))
		return document_error(reading->document, value, err,
				      "client_ca_file and a client_auth_type that verifies "
				      "(RequireAndVerifyClientCert) need one another");
	if (config->client_sans_count && !verifies)
		return document_error(reading->document, value, err,
				      "client_allowed_sans needs a client_auth_type that verifies");
	return 0;
}

/* http_server_config */

static int take_http2(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;
	bool http2;
	int rc = document_bool(reading->document, value, &http2, err);

	reading->config->http1_only = !rc && !http2;
	return rc;
}

static bool is_header(struct slice name, struct slice value)
{
	for (size_t i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.data[i]) && name.data[i] != '-')
			return false;
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.data[i] < ' ' || value.data[i] == 0x7f)
			return false;
	return name.len && value.len;
}

static int take_header(void *context, struct slice key, const struct yaml_node_s *value,
		       struct err *err)
{
	struct reading *reading = context;
	struct web_config *config = reading->config;
	struct web_config_header *header =
		add(reading, &config->headers, sizeof(*config->headers), &config->headers_count);
	int rc = take_text(reading, value, &header->value, err);
	char *name;

	if (rc)
		return rc;
	if (!is_header(key, header->value))
		return document_error(reading->document, value, err, "not a header: \"%.*s\"",
				      SLICE_FMT(key));
	header->name = arena_copy(&config->arena, key);
	name = (char *)(uintptr_t)header->name.data;
	for (size_t i = 0; i < header->name.len; i++)
		name[i] = (char)tolower((unsigned char)name[i]);
	return 0;
}

static int take_headers(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	reading->capacity = 0;
	return document_each_pair(reading->document, value, take_header, reading, err);
}

static int take_http(void *context, const struct yaml_node_s *value, struct err *err)
{
	static const struct document_key keys[] = { { "http2", take_http2 },
						    { "headers", take_headers } };
	struct reading *reading = context;

	return document_take_map(reading->document, value, keys, COUNT_OF(keys), reading, err);
}

/* users, roles, tokens */

/* crypt(5): "$2y$10$" and 53 characters of salt and hash. */
static bool is_bcrypt(struct slice text)
{
	return text.len == 60 && text.data[0] == '$' && text.data[1] == '2' &&
	       strchr("aby", text.data[2]) && text.data[3] == '$' && text.data[6] == '$';
}

static int take_user(void *context, struct slice key, const struct yaml_node_s *value,
		     struct err *err)
{
	struct reading *reading = context;
	struct web_config *config = reading->config;
	struct web_config_user *user =
		add(reading, &config->users, sizeof(*config->users), &config->users_count);
	int rc = take_text(reading, value, &user->bcrypt, err);

	if (rc)
		return rc;
	user->name = arena_copy(&config->arena, key);
	user->roles = ALL_ROLES;
	if (!is_bcrypt(user->bcrypt))
		return document_error(reading->document, value, err,
				      "the password of \"%.*s\" is not a bcrypt hash ($2y$10$...); "
				      "make one with: htpasswd -nBC 10 \"\"",
				      SLICE_FMT(key));
	if (!key.len || memchr(key.data, ':', key.len))
		return document_error(reading->document, value, err,
				      "a user's name has characters, but no colon");
	for (size_t i = 0; i + 1 < config->users_count; i++)
		if (slice_equal(config->users[i].name, key))
			return document_error(reading->document, value, err,
					      "\"%.*s\" is given twice", SLICE_FMT(key));
	return 0;
}

static int take_users(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	reading->capacity = 0;
	return document_each_pair(reading->document, value, take_user, reading, err);
}

struct role_list {
	struct reading *reading;
	unsigned roles;
};

static int take_role(void *context, const struct yaml_node_s *item, struct err *err)
{
	static const char *const names[] = { "ingest", "query", "admin" };
	struct role_list *list = context;
	int role;
	int rc = take_word(list->reading, item, names, COUNT_OF(names), &role, err);

	if (!rc)
		list->roles |= 1u << role;
	return rc;
}

static int take_roles(struct reading *reading, const struct yaml_node_s *value, unsigned *ret,
		      struct err *err)
{
	struct role_list list = { reading, 0 };
	int rc = document_each_item(reading->document, value, take_role, &list, err);

	*ret = list.roles;
	return rc;
}

/* *ret is the user of that name; `value` is where an error lies. */
static int find_user(const struct reading *reading, struct slice name,
		     const struct yaml_node_s *value, struct web_config_user **ret, struct err *err)
{
	struct web_config *config = reading->config;

	for (size_t i = 0; i < config->users_count; i++)
		if (slice_equal(config->users[i].name, name)) {
			*ret = &config->users[i];
			return 0;
		}
	return document_error(reading->document, value, err,
			      "\"%.*s\" is not in basic_auth_users (which must come first)",
			      SLICE_FMT(name));
}

static int take_user_role(void *context, struct slice key, const struct yaml_node_s *value,
			  struct err *err)
{
	struct web_config_user *user;
	int rc = find_user(context, key, value, &user, err);

	return rc ? rc : take_roles(context, value, &user->roles, err);
}

static int take_user_roles(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return document_each_pair(reading->document, value, take_user_role, reading, err);
}

struct tenant_list {
	struct reading *reading;
	struct web_config_tenants *tenants;
};

static int take_tenant(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct tenant_list *list = context;
	struct slice *name = add(list->reading, &list->tenants->names,
				 sizeof(*list->tenants->names), &list->tenants->count);
	int rc = take_text(list->reading, item, name, err);

	if (!rc && !tenant_limits_is_name(*name))
		rc = document_error(
			list->reading->document, item, err,
			"\"%.*s\" is no tenant: at most %u letters, digits and !-_.*'()",
			SLICE_FMT(*name), TENANT_LIMITS_NAME_BYTES_MAX);
	return rc;
}

/* A list of one "*" is that of a proxy, which says whose each request is. */
static int take_tenants(struct reading *reading, const struct yaml_node_s *value,
			struct web_config_tenants *ret, struct err *err)
{
	struct tenant_list list = { reading, ret };
	size_t capacity = reading->capacity;
	int rc;

	*ret = (struct web_config_tenants){ 0 };
	reading->capacity = 0;
	rc = document_each_item(reading->document, value, take_tenant, &list, err);
	reading->capacity = capacity;
	if (!rc && !ret->count)
		rc = document_error(reading->document, value, err,
				    "no tenants; write [\"*\"] for any");
	if (!rc && ret->count == 1 && slice_is(ret->names[0], "*"))
		*ret = (struct web_config_tenants){ 0 };
	return rc;
}

static int take_user_tenant(void *context, struct slice key, const struct yaml_node_s *value,
			    struct err *err)
{
	struct web_config_user *user;
	int rc = find_user(context, key, value, &user, err);

	return rc ? rc : take_tenants(context, value, &user->tenants, err);
}

static int take_user_tenants(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return document_each_pair(reading->document, value, take_user_tenant, reading, err);
}

static int take_tenant_limits(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return tenant_limits_take(reading->document, value, &reading->config->arena,
				  &reading->config->tenant_limits, err);
}

static int take_token_name(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_text(reading, value, &reading->token->name, err);
}

static int take_token_file(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_path(reading, value, &reading->token->file, err);
}

static int take_token_sha256(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;
	struct slice text;
	int rc = document_text(reading->document, value, &text, err);

	if (rc)
		return rc;
	for (size_t i = 0; text.len == (size_t)2 * WEB_CONFIG_SHA256_BYTES; i++) {
		int high, low;

		if (i == WEB_CONFIG_SHA256_BYTES) {
			reading->has_sha256 = true;
			return 0;
		}
		high = slice_hex_digit(text.data[2 * i]);
		low = slice_hex_digit(text.data[2 * i + 1]);
		if (high < 0 || low < 0)
			break;
		reading->token->sha256[i] = (uint8_t)(high << 4 | low);
	}
	return document_error(
		reading->document, value, err,
		"sha256 takes 64 hexadecimal digits in lower case; make them with: printf %%s "
		"TOKEN | sha256sum");
}

static int take_token_roles(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_roles(reading, value, &reading->token->roles, err);
}

static int take_token_tenants(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_tenants(reading, value, &reading->token->tenants, err);
}

static int take_token(void *context, const struct yaml_node_s *item, struct err *err)
{
	static const struct document_key keys[] = {
		{ "name", take_token_name },	   { "token_file", take_token_file },
		{ "sha256", take_token_sha256 },   { "roles", take_token_roles },
		{ "tenants", take_token_tenants },
	};
	struct reading *reading = context;
	struct web_config *config = reading->config;
	int rc;

	reading->token =
		add(reading, &config->tokens, sizeof(*config->tokens), &config->tokens_count);
	reading->has_sha256 = false;
	rc = document_take_map(reading->document, item, keys, COUNT_OF(keys), reading, err);
	if (rc)
		return rc;
	if (!reading->token->name.len || !reading->token->roles)
		return document_error(reading->document, item, err,
				      "a token needs a name and roles");
	if (reading->has_sha256 == (reading->token->file.len > 0))
		return document_error(reading->document, item, err,
				      "token \"%.*s\" needs either token_file or sha256",
				      SLICE_FMT(reading->token->name));
	return 0;
}

static int take_tokens(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	reading->capacity = 0;
	return document_each_item(reading->document, value, take_token, reading, err);
}

static int refuse_rate_limit(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return document_error(
		reading->document, value, err,
		"rate_limit is not supported: firn bounds the bytes, the requests and the "
		"connections in flight by itself; remove the key");
}

static int read_document(struct reading *reading, struct err *err)
{
	static const struct document_key keys[] = {
		{ "tls_server_config", take_tls },     { "http_server_config", take_http },
		{ "basic_auth_users", take_users },    { "user_roles", take_user_roles },
		{ "bearer_tokens", take_tokens },      { "rate_limit", refuse_rate_limit },
		{ "user_tenants", take_user_tenants }, { "tenant_limits", take_tenant_limits },
	};
	const struct yaml_node_s *root = document_root(reading->document);

	return root ? document_take_map(reading->document, root, keys, COUNT_OF(keys), reading, err)
		    : 0;
}

int web_config_parse(struct slice text, const char *path, struct web_config *ret, struct err *err)
{
	const char *slash = strrchr(path, '/');
	struct reading reading = { .config = ret };
	int rc;

	*ret = (struct web_config){ 0 };
	arena_init(&ret->arena, 0);
	tenant_limits_init(&ret->tenant_limits);
	reading.directory = slice_from(path, slash ? (size_t)(slash - path) + 1 : 0);
	rc = document_parse(text, path, &reading.document, err);
	if (!rc)
		rc = read_document(&reading, err);
	document_free(reading.document);
	if (rc)
		web_config_free(ret);
	return rc;
}

int web_config_load(const char *path, struct web_config *ret, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = whole_file_read(path, DOCUMENT_BYTES_MAX, &text, err);

	if (!rc)
		rc = web_config_parse(strbuf_slice(&text), path, ret, err);
	strbuf_free(&text);
	return rc;
}

void web_config_free(struct web_config *config)
{
	arena_free(&config->arena);
	*config = (struct web_config){ 0 };
}
