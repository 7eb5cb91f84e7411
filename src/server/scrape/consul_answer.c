/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/consul_answer.h"

#include "base/budget.h"
#include "codec/wire/json_read.h"
#include "server/scrape/discovery.h"

#define META "__meta_consul_"

static bool is_named(const struct discovery_config *config, struct slice name)
{
	for (size_t i = 0; i < config->consul.services.count; i++)
		if (slice_equal(config->consul.services.items[i], name))
			return true;
	return !config->consul.services.count;
}

static bool has_tag(const json_t *tags, struct slice wanted)
{
	const json_t *tag;
	size_t i;

	json_array_foreach(tags, i, tag)
	{
		if (slice_equal(json_text_of(tag), wanted))
			return true;
	}
	return false;
}

static bool has_tags(const struct discovery_config *config, const json_t *tags)
{
	for (size_t i = 0; i < config->consul.tags.count; i++)
		if (!has_tag(tags, config->consul.tags.items[i]))
			return false;
	return true;
}

int consul_answer_services(struct slice answer, const struct discovery_config *config,
			   int (*take)(void *context, struct slice name, struct err *err),
			   void *context, struct err *err)
{
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX,
				 .parent = &discovery_memory };
	const json_t *tags;
	const char *name;
	struct json_read read;
	int rc = json_read(answer, 0, "Consul's services", &budget, &read, err);

	if (!rc && !json_is_object(read.root))
		rc = err_set(err, ERR_INVALID, "Consul's services: not a map of names");
	json_object_foreach(read.root, name, tags)
	{
		if (!rc && is_named(config, slice_of(name)) && has_tags(config, tags))
			rc = take(context, slice_of(name), err);
	}
	json_read_free(&read);
	return rc;
}

static void add(struct found *into, const char *name, struct slice value)
{
	found_labelf(into, name, "%.*s", SLICE_FMT(value));
}

static void add_pairs(struct found *into, const char *prefix, json_t *pairs)
{
	const json_t *value;
	const char *key;

	json_object_foreach(pairs, key, value)
	{
		found_label_of(into, prefix, slice_of(key), json_text_of(value));
	}
}

/* The separator is around each tag, at the ends, too. */
static void add_tags(struct found *into, const json_t *tags, struct slice separator)
{
	struct strbuf text = { 0 };
	const json_t *tag;
	size_t i;

	strbuf_add_slice(&text, separator);
	json_array_foreach(tags, i, tag)
	{
		if (i)
			strbuf_add_slice(&text, separator);
		strbuf_add_slice(&text, json_text_of(tag));
	}
	strbuf_add_slice(&text, separator);
	add(into, META "tags", (struct slice){ strbuf_text(&text), text.len });
	strbuf_free(&text);
}

/* The worst of the checks; maintenance is worse than all. */
static const char *health_of(const json_t *checks)
{
	static const char *const worst_last[] = { "passing", "warning", "critical", "maintenance" };
	const json_t *check;
	size_t worst = 0, i;

	json_array_foreach(checks, i, check)
	{
		struct slice id = json_text_at(check, "CheckID"),
			     status = json_text_at(check, "Status");
		size_t level = 0;

		if (slice_is(id, "_node_maintenance") ||
		    slice_starts_with(id, SLICE_LITERAL("_service_maintenance:")))
			status = SLICE_LITERAL("maintenance");
		while (level < 4 && !slice_is(status, worst_last[level]))
			level++;
		if (level == 4)
			return ""; /* none that Consul knows */
		worst = level > worst ? level : worst;
	}
	return worst_last[worst];
}

static void add_instance(struct found *into, const struct discovery_config *config,
			 const json_t *entry)
{
	const json_t *node = json_object_get(entry, "Node");
	const json_t *service = json_object_get(entry, "Service");
	struct slice node_address = json_text_at(node, "Address");
	struct slice address = json_text_at(service, "Address");
	long long port = (long long)json_integer_value(json_object_get(service, "Port"));
	struct slice host = address.len ? address : node_address;
	bool is_ip6 = slice_find_byte(host, ':') != SIZE_MAX;

	add(into, META "address", node_address);
	add(into, META "node", json_text_at(node, "Node"));
	add(into, META "namespace", json_text_at(service, "Namespace"));
	add(into, META "partition", json_text_at(service, "Partition"));
	add_tags(into, json_object_get(service, "Tags"), config->consul.tag_separator);
	add(into, META "service_address", address);
	found_labelf(into, META "service_port", "%lld", port);
	add(into, META "service_id", json_text_at(service, "ID"));
	add(into, META "health", slice_of(health_of(json_object_get(entry, "Checks"))));
	add_pairs(into, META "metadata_", json_object_get(node, "Meta"));
	add_pairs(into, META "service_metadata_", json_object_get(service, "Meta"));
	add_pairs(into, META "tagged_address_", json_object_get(node, "TaggedAddresses"));
	found_labelf(into, "__address__", is_ip6 ? "[%.*s]:%lld" : "%.*s:%lld", SLICE_FMT(host),
		     port);
}

int consul_answer_instances(struct slice answer, const struct discovery_config *config,
			    struct slice service, struct slice datacenter, struct found *into,
			    struct err *err)
{
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX,
				 .parent = &discovery_memory };
	const json_t *entry;
	struct json_read read;
	int rc = json_read(answer, 0, "Consul's instances", &budget, &read, err);
	size_t i;

	if (!rc && !json_is_array(read.root))
		rc = err_set(err, ERR_INVALID, "Consul's instances: not a list");
	json_array_foreach(read.root, i, entry)
	{
		if (into->is_cut)
			break;
		add(into, META "service", service);
		add(into, META "dc", datacenter);
		add_instance(into, config, entry);
		found_target(into, 0);
	}
	json_read_free(&read);
	return rc;
}

int consul_answer_datacenter(struct slice answer, struct strbuf *ret, struct err *err)
{
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX,
				 .parent = &discovery_memory };
	struct json_read read;
	int rc = json_read(answer, 0, "Consul's agent", &budget, &read, err);
	struct slice name = json_text_at(json_object_get(read.root, "Config"), "Datacenter");

	if (!rc && !name.len)
		rc = err_set(err, ERR_INVALID, "Consul's agent: there is no Config.Datacenter");
	strbuf_clear(ret);
	strbuf_add_slice(ret, name);
	json_read_free(&read);
	return rc;
}
