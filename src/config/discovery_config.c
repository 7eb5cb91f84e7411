/* SPDX-License-Identifier: Apache-2.0 */
#include "config/discovery_config.h"

#include <strings.h>

#include "base/strbuf.h"
#include "config/rule_labels.h"

#define REFRESH_NS (60 * CLOCK_NS_PER_S)

const char *const discovery_config_names[DISCOVERY_KINDS] = {
	[DISCOVERY_STATIC] = "static_configs",
	[DISCOVERY_FILE] = "file_sd_configs",
	[DISCOVERY_HTTP] = "http_sd_configs",
	[DISCOVERY_DOCKER] = "docker_sd_configs",
	[DISCOVERY_KUBERNETES] = "kubernetes_sd_configs",
	[DISCOVERY_DNS] = "dns_sd_configs",
	[DISCOVERY_CONSUL] = "consul_sd_configs",
};

#define ROW(name, kind, member) FIELD_AT(name, kind, struct discovery_config, member)
#define ACCESS HTTP_ACCESS_CONFIG_FIELDS(struct discovery_config, access)

static const struct field static_fields[] = {
	ROW("targets", FIELD_TEXTS, targets),
	ROW("labels", FIELD_PAIRS, labels),
	{ 0 },
};

static const struct field file_fields[] = {
	ROW("files", FIELD_TEXTS, files),
	ROW("refresh_interval", FIELD_DURATION, refresh_ns),
	{ 0 },
};

static const struct field http_fields[] = {
	ROW("url", FIELD_TEXT, url),
	ROW("refresh_interval", FIELD_DURATION, refresh_ns),
	ACCESS,
	{ 0 },
};

struct taking {
	struct fields_reader *reader;
	void *into;
	enum discovery_kind kind;
};

static const struct field filter_fields[] = {
	FIELD_AT("name", FIELD_TEXT, struct discovery_filter, name),
	FIELD_AT("values", FIELD_TEXTS, struct discovery_filter, values),
	{ 0 },
};

static int take_filter(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct taking *taking = context;
	struct discovery_config *config = taking->into;
	struct discovery_filter *filter =
		fields_add(taking->reader, &config->filters, sizeof(*filter),
			   &config->filters_count, item, err);

	return filter ? fields_read(taking->reader, item, filter_fields, filter, err)
		      : -ERR_INVALID;
}

static int take_filters(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
			struct err *err)
{
	struct taking taking = { reader, into, DISCOVERY_DOCKER };

	return document_each_item(reader->document, value, take_filter, &taking, err);
}

static const struct field docker_fields[] = {
	ROW("host", FIELD_TEXT, host),
	ROW("port", FIELD_COUNT, port),
	ROW("host_networking_host", FIELD_TEXT, host_networking_host),
	ROW("match_first_network", FIELD_BOOL, match_first_network),
	{ "filters", FIELD_OTHER, 0, NULL, take_filters },
	ROW("refresh_interval", FIELD_DURATION, refresh_ns),
	ACCESS,
	{ 0 },
};

static const struct field namespaces_fields[] = {
	{ "names", FIELD_TEXTS, 0, NULL, NULL },
	{ "own_namespace", FIELD_BOOL, sizeof(struct field_texts), NULL, NULL },
	{ 0 },
};
_Static_assert(offsetof(struct discovery_config, namespaces.own_namespace) ==
		       offsetof(struct discovery_config, namespaces) + sizeof(struct field_texts),
	       "the namespaces are laid out otherwise");

static const struct field selector_fields[] = {
	FIELD_AT("role", FIELD_TEXT, struct discovery_selector, role),
	FIELD_AT("label", FIELD_TEXT, struct discovery_selector, label),
	FIELD_AT("field", FIELD_TEXT, struct discovery_selector, field),
	{ 0 },
};

static int take_selector(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct taking *taking = context;
	struct discovery_config *config = taking->into;
	struct discovery_selector *selector =
		fields_add(taking->reader, &config->selectors, sizeof(*selector),
			   &config->selectors_count, item, err);

	return selector ? fields_read(taking->reader, item, selector_fields, selector, err)
			: -ERR_INVALID;
}

static int take_selectors(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
			  struct err *err)
{
	struct taking taking = { reader, into, DISCOVERY_KUBERNETES };

	return document_each_item(reader->document, value, take_selector, &taking, err);
}

static const struct field attach_fields[] = {
	{ "node", FIELD_BOOL, 0, NULL, NULL },
	{ 0 },
};

static const struct field kubernetes_fields[] = {
	ROW("role", FIELD_TEXT, role_text),
	ROW("api_server", FIELD_TEXT, api_server),
	{ "namespaces", FIELD_MAP, offsetof(struct discovery_config, namespaces), namespaces_fields,
	  NULL },
	{ "selectors", FIELD_OTHER, 0, NULL, take_selectors },
	ROW("kubeconfig_file", FIELD_PATH, kubeconfig_file),
	{ "attach_metadata", FIELD_MAP, offsetof(struct discovery_config, attach_metadata),
	  attach_fields, NULL },
	ACCESS,
	{ 0 },
};

static const struct field dns_fields[] = {
	ROW("names", FIELD_TEXTS, dns.names),
	ROW("type", FIELD_TEXT, dns.record_text),
	ROW("port", FIELD_COUNT, port),
	ROW("refresh_interval", FIELD_DURATION, refresh_ns),
	{ 0 },
};

static const struct field consul_fields[] = {
	ROW("server", FIELD_TEXT, consul.server),
	ROW("scheme", FIELD_TEXT, consul.scheme),
	ROW("path_prefix", FIELD_TEXT, consul.path_prefix),
	ROW("token", FIELD_TEXT, consul.token),
	ROW("username", FIELD_TEXT, consul.username),
	ROW("password", FIELD_TEXT, consul.password),
	ROW("datacenter", FIELD_TEXT, consul.datacenter),
	ROW("namespace", FIELD_TEXT, consul.namespace_name),
	ROW("partition", FIELD_TEXT, consul.partition),
	ROW("tag_separator", FIELD_TEXT, consul.tag_separator),
	ROW("allow_stale", FIELD_BOOL, consul.allow_stale),
	ROW("services", FIELD_TEXTS, consul.services),
	ROW("tags", FIELD_TEXTS, consul.tags),
	ROW("node_meta", FIELD_PAIRS, consul.node_meta),
	ROW("refresh_interval", FIELD_DURATION, refresh_ns),
	ROW("filter", FIELD_TEXT, consul.filter),
	ROW("health_filter", FIELD_TEXT, consul.health_filter),
	ACCESS,
	{ 0 },
};

static const struct field *const fields_of[DISCOVERY_KINDS] = {
	[DISCOVERY_STATIC] = static_fields,
	[DISCOVERY_FILE] = file_fields,
	[DISCOVERY_HTTP] = http_fields,
	[DISCOVERY_DOCKER] = docker_fields,
	[DISCOVERY_KUBERNETES] = kubernetes_fields,
	[DISCOVERY_DNS] = dns_fields,
	[DISCOVERY_CONSUL] = consul_fields,
};

/* True if a selector may be for this role: the own one, or one that targets are joined with. */
static bool may_select(const struct discovery_config *config, struct slice role)
{
	bool is_joined =
		config->role == DISCOVERY_ROLE_ENDPOINTS || config->role == DISCOVERY_ROLE_SLICE;

	return slice_equal(role, config->role_text) ||
	       (is_joined && (slice_is(role, "pod") || slice_is(role, "service"))) ||
	       (config->attach_metadata.node && slice_is(role, "node"));
}

/* A kubeconfig says all of it. */
static bool says_who_we_are(const struct http_access_config *access)
{
	return access->basic.username.len || access->basic.username_file.len ||
	       access->authorization.credentials.len ||
	       access->authorization.credentials_file.len || access->bearer_token.len ||
	       access->bearer_token_file.len || access->oauth2.token_url.len ||
	       access->tls.ca.len || access->tls.ca_file.len || access->tls.cert.len ||
	       access->tls.cert_file.len || access->tls.server_name.len ||
	       access->tls.insecure_skip_verify || access->proxy_url.len;
}

static const char *why_bad_kubernetes(const struct discovery_config *config)
{
	if (config->kubeconfig_file.len && config->api_server.len)
		return "kubeconfig_file and api_server exclude each other";
	if (config->kubeconfig_file.len && says_who_we_are(&config->access))
		return "kubeconfig_file says who we are: nothing else goes beside it";
	if (config->role == DISCOVERY_ROLES)
		return "\"role\" is not one of: pod, node, service, endpoints, endpointslice, "
		       "ingress";
	for (size_t i = 0; i < config->selectors_count; i++) {
		if (!may_select(config, config->selectors[i].role))
			return "a selector is for another role";
		for (size_t j = 0; j < i; j++)
			if (slice_equal(config->selectors[i].role, config->selectors[j].role))
				return "there is more than one selector of a role";
	}
	return !config->api_server.len ||
			       slice_starts_with(config->api_server, SLICE_LITERAL("http://")) ||
			       slice_starts_with(config->api_server, SLICE_LITERAL("https://"))
		       ? NULL
		       : "\"api_server\" has to begin with http:// or https://";
}

static const char *why_bad_dns(const struct discovery_config *config)
{
	if (!config->dns.names.count)
		return "\"names\" is missing";
	if (config->dns.record == DISCOVERY_RECORDS)
		return "\"type\" is not one of: SRV, A, AAAA, MX, NS";
	if (config->dns.record != DISCOVERY_RECORD_SRV && !config->port)
		return "\"port\" is missing: only SRV records have one";
	return config->port > UINT16_MAX ? "\"port\" is not a port number" : NULL;
}

static const char *why_bad_consul(const struct discovery_config *config)
{
	const struct http_access_config *access = &config->access;

	if (!slice_trim(config->consul.server).len)
		return "\"server\" is empty";
	if (!slice_is(config->consul.scheme, "http") && !slice_is(config->consul.scheme, "https"))
		return "\"scheme\" is neither http nor https";
	if (config->consul.username.len &&
	    !slice_equal(config->consul.username, access->basic.username))
		return "username and basic_auth exclude each other";
	for (size_t i = 0; i < config->consul.token.len; i++)
		if ((unsigned char)config->consul.token.data[i] < ' ')
			return "\"token\" has a control character";
	return NULL;
}

static const char *why_bad(const struct discovery_config *config)
{
	switch (config->kind) {
	case DISCOVERY_STATIC:
		for (size_t i = 0; i < config->labels.count; i++)
			if (!rule_labels_is_name(config->labels.items[i].name))
				return "\"labels\" has an invalid label name";
		return NULL;
	case DISCOVERY_FILE:
		return config->files.count ? NULL : "\"files\" is missing";
	case DISCOVERY_HTTP:
		return slice_starts_with(config->url, SLICE_LITERAL("http://")) ||
				       slice_starts_with(config->url, SLICE_LITERAL("https://"))
			       ? NULL
			       : "\"url\" has to begin with http:// or https://";
	case DISCOVERY_DOCKER:
		if (config->port > UINT16_MAX)
			return "\"port\" is not a port number";
		for (size_t i = 0; i < config->filters_count; i++)
			if (!config->filters[i].name.len)
				return "a filter has no \"name\"";
		return slice_starts_with(config->host, SLICE_LITERAL("unix:///")) ||
				       slice_starts_with(config->host, SLICE_LITERAL("tcp://")) ||
				       slice_starts_with(config->host, SLICE_LITERAL("http://")) ||
				       slice_starts_with(config->host, SLICE_LITERAL("https://"))
			       ? NULL
			       : "\"host\" has to begin with unix:///, tcp://, http:// or https://";
	case DISCOVERY_KUBERNETES:
		return why_bad_kubernetes(config);
	case DISCOVERY_DNS:
		return why_bad_dns(config);
	case DISCOVERY_CONSUL:
		return why_bad_consul(config);
	default:
		return NULL;
	}
}

static enum discovery_role role_of(struct slice text)
{
	static const char *const names[DISCOVERY_ROLES] = { [DISCOVERY_ROLE_POD] = "pod",
							    [DISCOVERY_ROLE_NODE] = "node",
							    [DISCOVERY_ROLE_SERVICE] = "service",
							    [DISCOVERY_ROLE_ENDPOINTS] =
								    "endpoints",
							    [DISCOVERY_ROLE_SLICE] =
								    "endpointslice",
							    [DISCOVERY_ROLE_INGRESS] = "ingress" };
	int role = 0;

	while (role < DISCOVERY_ROLES && !slice_is(text, names[role]))
		role++;
	return (enum discovery_role)role;
}

static enum discovery_record record_of(struct slice text)
{
	static const char *const names[DISCOVERY_RECORDS] = { [DISCOVERY_RECORD_SRV] = "SRV",
							      [DISCOVERY_RECORD_A] = "A",
							      [DISCOVERY_RECORD_AAAA] = "AAAA",
							      [DISCOVERY_RECORD_MX] = "MX",
							      [DISCOVERY_RECORD_NS] = "NS" };
	int record = 0;

	while (record < DISCOVERY_RECORDS && (text.len != strlen(names[record]) ||
					      strncasecmp(text.data, names[record], text.len) != 0))
		record++;
	return (enum discovery_record)record;
}

/* Consul's own names for a user, beside those that all have. */
static void take_user(struct discovery_config *config)
{
	if (!config->consul.username.len || config->access.basic.username.len)
		return;
	config->access.basic.username = config->consul.username;
	config->access.basic.password = config->consul.password;
}

static int resolve_paths(struct fields_reader *reader, struct discovery_config *config,
			 const struct yaml_node_s *at, struct err *err)
{
	for (size_t i = 0; i < config->files.count; i++) {
		struct slice *file = &config->files.items[i];
		bool known = slice_ends_with(*file, SLICE_LITERAL(".json")) ||
			     slice_ends_with(*file, SLICE_LITERAL(".yml")) ||
			     slice_ends_with(*file, SLICE_LITERAL(".yaml"));
		struct strbuf path = { 0 };

		if (!known)
			return document_error(reader->document, at, err,
					      "\"%.*s\" ends in none of .json, .yml, .yaml",
					      SLICE_FMT(*file));
		if (file->data[0] == '/')
			continue;
		strbuf_add_slice(&path, reader->directory);
		strbuf_add_slice(&path, *file);
		*file = arena_copy(reader->arena, strbuf_slice(&path));
		strbuf_free(&path);
	}
	return 0;
}

static int take_one(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct taking *taking = context;
	struct discovery_configs *configs = taking->into;
	struct discovery_config *config = fields_add(taking->reader, &configs->items,
						     sizeof(*config), &configs->count, item, err);
	static const int64_t refresh_ns[DISCOVERY_KINDS] = {
		[DISCOVERY_FILE] = 5 * REFRESH_NS,
		[DISCOVERY_DNS] = REFRESH_NS / 2,
		[DISCOVERY_CONSUL] = REFRESH_NS / 2,
	};
	const char *why;
	int rc;

	if (!config)
		return -ERR_INVALID;
	*config = (struct discovery_config){
		.kind = taking->kind,
		.line = document_line(item),
		.refresh_ns = refresh_ns[taking->kind] ? refresh_ns[taking->kind] : REFRESH_NS,
		.access = HTTP_ACCESS_CONFIG_DEFAULT,
		.port = taking->kind == DISCOVERY_DNS ? 0 : 80,
		.host_networking_host = SLICE_LITERAL("localhost"),
		.match_first_network = true,
		.dns = { .record_text = SLICE_LITERAL("SRV") },
		.consul = { .server = SLICE_LITERAL("localhost:8500"),
			    .scheme = SLICE_LITERAL("http"),
			    .tag_separator = SLICE_LITERAL(","),
			    .allow_stale = true },
	};
	rc = fields_read(taking->reader, item, fields_of[taking->kind], config, err);
	config->role = role_of(config->role_text);
	config->dns.record = record_of(config->dns.record_text);
	take_user(config);
	if (!rc)
		rc = http_access_config_check(taking->reader, &config->access, item, err);
	if (!rc)
		rc = resolve_paths(taking->reader, config, item, err);
	why = rc ? NULL : why_bad(config);
	return why ? document_error(taking->reader->document, item, err, "%s: %s",
				    discovery_config_names[config->kind], why)
		   : rc;
}

#define TAKE(name, kind)                                                                           \
	static int name(struct fields_reader *reader, const struct yaml_node_s *value, void *into, \
			struct err *err)                                                           \
	{                                                                                          \
		struct taking taking = { reader, into, kind };                                     \
                                                                                                   \
		return document_each_item(reader->document, value, take_one, &taking, err);        \
	}
TAKE(take_static, DISCOVERY_STATIC)
TAKE(take_file, DISCOVERY_FILE)
TAKE(take_http, DISCOVERY_HTTP)
TAKE(take_docker, DISCOVERY_DOCKER)
TAKE(take_kubernetes, DISCOVERY_KUBERNETES)
TAKE(take_dns, DISCOVERY_DNS)
TAKE(take_consul, DISCOVERY_CONSUL)

field_take_f *const discovery_config_takes[DISCOVERY_KINDS] = {
	[DISCOVERY_STATIC] = take_static,
	[DISCOVERY_FILE] = take_file,
	[DISCOVERY_HTTP] = take_http,
	[DISCOVERY_DOCKER] = take_docker,
	[DISCOVERY_KUBERNETES] = take_kubernetes,
	[DISCOVERY_DNS] = take_dns,
	[DISCOVERY_CONSUL] = take_consul,
};
