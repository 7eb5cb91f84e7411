/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/docker_answer.h"

#include <stdlib.h>

#include "base/budget.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/wire/json_read.h"
#include "server/scrape/discovery.h"

#define SHARED_MAX 16u /* containers that share the network of one that shares it of one ... */

struct reading {
	const struct discovery_config *config;
	json_t *containers, *networks; /* by id; values belong to the answers */
	struct found *into;
};

static void add_labels(struct found *into, const char *prefix, json_t *labels)
{
	const json_t *value;
	const char *key;

	json_object_foreach(labels, key, value)
	{
		found_label_of(into, prefix, slice_of(key), json_text_of(value));
	}
}

static struct slice mode_of(const json_t *container)
{
	return json_text_at(json_object_get(container, "HostConfig"), "NetworkMode");
}

/* Its networks by name, or those of the container whose network it shares. */
static json_t *networks_of(const struct reading *reading, const json_t *container)
{
	struct slice shares = SLICE_LITERAL("container:");

	for (unsigned i = 0; i < SHARED_MAX && container; i++) {
		json_t *networks =
			json_object_get(json_object_get(container, "NetworkSettings"), "Networks");
		struct slice mode = mode_of(container);

		if (json_object_size(networks) || !slice_starts_with(mode, shares))
			return networks;
		mode = slice_tail(mode, shares.len); /* a NUL follows it */
		container = json_object_get(reading->containers, mode.data);
	}
	return NULL;
}

static void add_address(struct found *into, struct slice ip, uint64_t port)
{
	bool is_ip6 = slice_find_byte(ip, ':') != SIZE_MAX;

	found_labelf(into, "__address__", is_ip6 ? "[%.*s]:%llu" : "%.*s:%llu", SLICE_FMT(ip),
		     (unsigned long long)port);
}

static void add_bool(struct found *into, const char *name, const json_t *value)
{
	found_label(into, slice_of(name), slice_of(json_is_true(value) ? "true" : "false"));
}

static void add_network_labels(const struct reading *reading, const json_t *endpoint)
{
	struct slice id = json_text_at(endpoint, "NetworkID");
	json_t *network = json_object_get(reading->networks, id.data);
	struct found *into = reading->into;

	found_label(into, SLICE_LITERAL("__meta_docker_network_ip"),
		    json_text_at(endpoint, "IPAddress"));
	if (!network)
		return;
	found_label(into, SLICE_LITERAL("__meta_docker_network_id"), id);
	found_label(into, SLICE_LITERAL("__meta_docker_network_name"),
		    json_text_at(network, "Name"));
	found_label(into, SLICE_LITERAL("__meta_docker_network_scope"),
		    json_text_at(network, "Scope"));
	add_bool(into, "__meta_docker_network_internal", json_object_get(network, "Internal"));
	add_bool(into, "__meta_docker_network_ingress", json_object_get(network, "Ingress"));
	add_labels(into, "__meta_docker_network_label_", json_object_get(network, "Labels"));
}

/* One target for each TCP port; false: there is none. */
static bool add_ports(const struct reading *reading, const json_t *container, struct slice ip)
{
	const json_t *ports = json_object_get(container, "Ports"), *port;
	struct found *into = reading->into;
	size_t mark = found_mark(into);
	bool has_any = false;
	size_t i;

	json_array_foreach(ports, i, port)
	{
		json_int_t private = json_integer_value(json_object_get(port, "PrivatePort"));
		json_int_t public = json_integer_value(json_object_get(port, "PublicPort"));

		if (!slice_is(json_text_at(port, "Type"), "tcp") || private < 1 ||
		    private > UINT16_MAX)
			continue;
		found_labelf(into, "__meta_docker_port_private", "%lld", (long long)private);
		if (public > 0) {
			found_labelf(into, "__meta_docker_port_public", "%lld", (long long)public);
			found_label(into, SLICE_LITERAL("__meta_docker_port_public_ip"),
				    json_text_at(port, "IP"));
		}
		add_address(into, ip, (uint64_t) private);
		found_target(into, mark);
		has_any = true;
	}
	return has_any;
}

static void add_network(const struct reading *reading, const json_t *container,
			const json_t *endpoint)
{
	struct slice ip = json_text_at(endpoint, "IPAddress");
	struct found *into = reading->into;
	size_t mark = found_mark(into);

	add_network_labels(reading, endpoint);
	if (!add_ports(reading, container, ip)) {
		if (slice_is(mode_of(container), "host"))
			found_label(into, SLICE_LITERAL("__address__"),
				    reading->config->host_networking_host);
		else
			add_address(into, ip, reading->config->port);
		found_target(into, mark);
	}
	found_forget(into, mark);
}

/* All of its networks, or the first by name. */
static void add_networks(const struct reading *reading, const json_t *container, json_t *networks)
{
	const char *key, *first = NULL;
	const json_t *endpoint;

	json_object_foreach(networks, key, endpoint)
	{
		if (!json_is_object(endpoint))
			continue;
		if (!reading->config->match_first_network)
			add_network(reading, container, endpoint);
		else if (!first || strcmp(key, first) < 0)
			first = key;
	}
	if (first)
		add_network(reading, container, json_object_get(networks, first));
}

static void add_container(const struct reading *reading, const json_t *container)
{
	struct slice name = json_text_of(json_array_get(json_object_get(container, "Names"), 0));
	struct found *into = reading->into;

	if (!name.len)
		return;
	found_label(into, SLICE_LITERAL("__meta_docker_container_id"),
		    json_text_at(container, "Id"));
	found_label(into, SLICE_LITERAL("__meta_docker_container_name"), name);
	found_label(into, SLICE_LITERAL("__meta_docker_container_network_mode"),
		    mode_of(container));
	add_labels(into, "__meta_docker_container_label_", json_object_get(container, "Labels"));
	add_networks(reading, container, networks_of(reading, container));
	found_forget(into, 0);
}

/* A list of objects, and the same by their Id. */
static int parse(struct slice text, const char *what, struct budget *budget, struct json_read *ret,
		 json_t **ret_by_id, struct err *err)
{
	int rc = json_read(text, 0, what, budget, ret, err);
	const json_t *value;
	size_t i;

	*ret_by_id = json_object();
	if (!rc && !json_is_array(ret->root))
		rc = err_set(err, ERR_INVALID, "%s: expected a list", what);
	if (rc)
		return rc;
	json_array_foreach(ret->root, i, value)
	{
		json_t *id = json_object_get(value, "Id");

		if (!json_is_string(id))
			return err_set(err, ERR_INVALID, "%s: number %zu has no Id", what, i);
		json_object_set(*ret_by_id, json_string_value(id), (json_t *)(uintptr_t)value);
	}
	return 0;
}

int docker_answer_read(struct slice containers, struct slice networks,
		       const struct discovery_config *config, struct found *into, struct err *err)
{
	struct reading reading = { .config = config, .into = into };
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX,
				 .parent = &discovery_memory };
	struct json_read container_list, network_list = { .root = NULL };
	const json_t *container;
	size_t i;
	int rc = parse(containers, "Docker's containers", &budget, &container_list,
		       &reading.containers, err);

	if (!rc)
		rc = parse(networks, "Docker's networks", &budget, &network_list, &reading.networks,
			   err);
	if (!rc) {
		json_array_foreach(container_list.root, i, container)
		{
			if (!into->is_cut)
				add_container(&reading, container);
		}
	}
	json_decref(reading.containers);
	json_decref(reading.networks);
	json_read_free(&container_list);
	json_read_free(&network_list);
	return rc;
}
