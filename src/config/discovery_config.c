/* SPDX-License-Identifier: Apache-2.0 */
#include "config/discovery_config.h"

#include "base/strbuf.h"
#include "config/rule_labels.h"

#define REFRESH_NS (60 * CLOCK_NS_PER_S)

const char *const discovery_config_names[DISCOVERY_KINDS] = {
	[DISCOVERY_STATIC] = "static_configs",
	[DISCOVERY_FILE] = "file_sd_configs",
	[DISCOVERY_HTTP] = "http_sd_configs",
	[DISCOVERY_DOCKER] = "docker_sd_configs",
	[DISCOVERY_KUBERNETES] = "kubernetes_sd_configs",
};

#define ROW(name, kind, member)                                                                    \
	{                                                                                          \
		name, kind, offsetof(struct discovery_config, member), NULL, NULL                  \
	}
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
	{ "name", FIELD_TEXT, offsetof(struct discovery_filter, name), NULL, NULL },
	{ "values", FIELD_TEXTS, offsetof(struct discovery_filter, values), NULL, NULL },
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
	{ "role", FIELD_TEXT, offsetof(struct discovery_selector, role), NULL, NULL },
	{ "label", FIELD_TEXT, offsetof(struct discovery_selector, label), NULL, NULL },
	{ "field", FIELD_TEXT, offsetof(struct discovery_selector, field), NULL, NULL },
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

static const struct field kubernetes_fields[] = {
	ROW("role", FIELD_TEXT, role_text),
	ROW("api_server", FIELD_TEXT, api_server),
	{ "namespaces", FIELD_MAP, offsetof(struct discovery_config, namespaces), namespaces_fields,
	  NULL },
	{ "selectors", FIELD_OTHER, 0, NULL, take_selectors },
	{ "kubeconfig_file", FIELD_REFUSED, 0, NULL, NULL },
	{ "attach_metadata", FIELD_REFUSED, 0, NULL, NULL },
	ACCESS,
	{ 0 },
};

static const struct field *const fields_of[DISCOVERY_KINDS] = {
	[DISCOVERY_STATIC] = static_fields,
	[DISCOVERY_FILE] = file_fields,
	[DISCOVERY_HTTP] = http_fields,
	[DISCOVERY_DOCKER] = docker_fields,
	[DISCOVERY_KUBERNETES] = kubernetes_fields,
};

static const char *why_bad_kubernetes(const struct discovery_config *config)
{
	if (config->role == DISCOVERY_ROLES)
		return "\"role\" is not one of: pod, node, service (other roles are not supported)";
	for (size_t i = 0; i < config->selectors_count; i++)
		if (!slice_equal(config->selectors[i].role, config->role_text))
			return "a selector is for another role";
	if (config->selectors_count > 1)
		return "there is more than one selector of the role";
	return !config->api_server.len ||
			       slice_starts_with(config->api_server, SLICE_LITERAL("http://")) ||
			       slice_starts_with(config->api_server, SLICE_LITERAL("https://"))
		       ? NULL
		       : "\"api_server\" has to begin with http:// or https://";
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
	default:
		return NULL;
	}
}

static enum discovery_role role_of(struct slice text)
{
	static const char *const names[DISCOVERY_ROLES] = { [DISCOVERY_ROLE_POD] = "pod",
							    [DISCOVERY_ROLE_NODE] = "node",
							    [DISCOVERY_ROLE_SERVICE] = "service" };
	int role = 0;

	while (role < DISCOVERY_ROLES && !slice_is(text, names[role]))
		role++;
	return (enum discovery_role)role;
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
	const char *why;
	int rc;

	if (!config)
		return -ERR_INVALID;
	*config = (struct discovery_config){
		.kind = taking->kind,
		.line = document_line(item),
		.refresh_ns = taking->kind == DISCOVERY_FILE ? 5 * REFRESH_NS : REFRESH_NS,
		.access = HTTP_ACCESS_CONFIG_DEFAULT,
		.port = 80,
		.host_networking_host = SLICE_LITERAL("localhost"),
		.match_first_network = true,
	};
	rc = fields_read(taking->reader, item, fields_of[taking->kind], config, err);
	config->role = role_of(config->role_text);
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

field_take_f *const discovery_config_takes[DISCOVERY_KINDS] = {
	[DISCOVERY_STATIC] = take_static,
	[DISCOVERY_FILE] = take_file,
	[DISCOVERY_HTTP] = take_http,
	[DISCOVERY_DOCKER] = take_docker,
	[DISCOVERY_KUBERNETES] = take_kubernetes,
};
