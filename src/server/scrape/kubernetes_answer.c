/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/kubernetes_answer.h"

#include <ctype.h>
#include <stdio.h>

#include "base/budget.h"
#include "codec/wire/json_read.h"
#include "server/scrape/discovery.h"

#define META "__meta_kubernetes_"
#define PREFIX_BYTES 64

static struct slice text_of(const json_t *value)
{
	return json_is_string(value)
		       ? slice_from(json_string_value(value), json_string_length(value))
		       : (struct slice){ "", 0 };
}

static struct slice member(const json_t *object, const char *name)
{
	return text_of(json_object_get(object, name));
}

static void add(struct found *into, const char *name, struct slice value)
{
	found_labelf(into, name, "%.*s", SLICE_FMT(value));
}

static void add_number(struct found *into, const char *name, const json_t *value)
{
	found_labelf(into, name, "%lld", (long long)json_integer_value(value));
}

/* Of "node", "label": each pair with its value, and that it is there. */
static void add_pairs(struct found *into, const char *what, const char *kind, json_t *pairs)
{
	char value_prefix[PREFIX_BYTES], present_prefix[PREFIX_BYTES];
	const json_t *value;
	const char *key;

	snprintf(value_prefix, sizeof(value_prefix), META "%s_%s_", what, kind);
	snprintf(present_prefix, sizeof(present_prefix), META "%s_%spresent_", what, kind);
	json_object_foreach(pairs, key, value)
	{
		found_label_of(into, value_prefix, slice_of(key), text_of(value));
		found_label_of(into, present_prefix, slice_of(key), SLICE_LITERAL("true"));
	}
}

static void add_metadata(struct found *into, const char *what, const json_t *metadata)
{
	add_pairs(into, what, "label", json_object_get(metadata, "labels"));
	add_pairs(into, what, "annotation", json_object_get(metadata, "annotations"));
}

static void add_address(struct found *into, struct slice host, const json_t *port)
{
	bool is_ip6 = slice_find_byte(host, ':') != SIZE_MAX;

	found_labelf(into, "__address__", is_ip6 ? "[%.*s]:%lld" : "%.*s:%lld", SLICE_FMT(host),
		     (long long)json_integer_value(port));
}

/* Pods */

static void add_ready(struct found *into, const json_t *status)
{
	const json_t *conditions = json_object_get(status, "conditions"), *condition;
	struct slice is_ready = SLICE_LITERAL("unknown");
	char text[16];
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		if (slice_is(member(condition, "type"), "Ready")) {
			is_ready = member(condition, "status");
			break;
		}
	}
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(is_ready));
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	add(into, META "pod_ready", slice_of(text));
}

static void add_controller(struct found *into, const json_t *metadata)
{
	const json_t *owners = json_object_get(metadata, "ownerReferences"), *owner;
	size_t i;

	json_array_foreach(owners, i, owner)
	{
		if (!json_is_true(json_object_get(owner, "controller")))
			continue;
		add(into, META "pod_controller_kind", member(owner, "kind"));
		add(into, META "pod_controller_name", member(owner, "name"));
		return;
	}
}

static struct slice container_id(const json_t *statuses, struct slice name)
{
	const json_t *status;
	size_t i;

	json_array_foreach(statuses, i, status)
	{
		if (slice_equal(member(status, "name"), name))
			return member(status, "containerID");
	}
	return (struct slice){ "", 0 };
}

/* One target for each port, or one without. The labels of the pod are there already. */
static void add_ports(struct found *into, const json_t *container, struct slice ip)
{
	const json_t *ports = json_object_get(container, "ports"), *port;
	size_t mark = found_mark(into), i;

	if (!json_array_size(ports)) {
		add(into, "__address__", ip);
		found_target(into, mark);
	}
	json_array_foreach(ports, i, port)
	{
		const json_t *number = json_object_get(port, "containerPort");
		struct slice protocol = member(port, "protocol");

		add_number(into, META "pod_container_port_number", number);
		add(into, META "pod_container_port_name", member(port, "name"));
		add(into, META "pod_container_port_protocol",
		    protocol.len ? protocol : SLICE_LITERAL("TCP"));
		add_address(into, ip, number);
		found_target(into, mark);
	}
}

static void add_containers(struct found *into, const json_t *containers, const json_t *statuses,
			   bool is_init, struct slice ip)
{
	const json_t *container;
	size_t i, mark = found_mark(into);

	json_array_foreach(containers, i, container)
	{
		struct slice name = member(container, "name");

		add(into, META "pod_container_name", name);
		add(into, META "pod_container_id", container_id(statuses, name));
		add(into, META "pod_container_image", member(container, "image"));
		add(into, META "pod_container_init", slice_of(is_init ? "true" : "false"));
		add_ports(into, container, ip);
		found_forget(into, mark);
	}
}

static void add_pod(struct found *into, const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const json_t *status = json_object_get(pod, "status"), *spec = json_object_get(pod, "spec");
	struct slice ip = member(status, "podIP");

	if (!ip.len)
		return;
	add(into, META "namespace", member(metadata, "namespace"));
	add(into, META "pod_name", member(metadata, "name"));
	add(into, META "pod_ip", ip);
	add(into, META "pod_phase", member(status, "phase"));
	add(into, META "pod_node_name", member(spec, "nodeName"));
	add(into, META "pod_host_ip", member(status, "hostIP"));
	add(into, META "pod_uid", member(metadata, "uid"));
	add_ready(into, status);
	add_controller(into, metadata);
	add_metadata(into, "pod", metadata);
	add_containers(into, json_object_get(spec, "containers"),
		       json_object_get(status, "containerStatuses"), false, ip);
	add_containers(into, json_object_get(spec, "initContainers"),
		       json_object_get(status, "initContainerStatuses"), true, ip);
}

/* Nodes */

static struct slice first_address(const json_t *addresses, const char *type)
{
	const json_t *address;
	size_t i;

	json_array_foreach(addresses, i, address)
	{
		if (slice_is(member(address, "type"), type))
			return member(address, "address");
	}
	return (struct slice){ "", 0 };
}

static void add_node(struct found *into, const json_t *node)
{
	static const char *const types[] = { "InternalIP", "ExternalIP", "LegacyHostIP",
					     "Hostname" };
	const json_t *metadata = json_object_get(node, "metadata");
	const json_t *status = json_object_get(node, "status"), *address;
	const json_t *addresses = json_object_get(status, "addresses");
	const json_t *kubelet =
		json_object_get(json_object_get(status, "daemonEndpoints"), "kubeletEndpoint");
	struct slice host = { "", 0 };
	size_t i;

	for (i = 0; !host.len && i < sizeof(types) / sizeof(types[0]); i++)
		host = first_address(addresses, types[i]);
	if (!host.len)
		return;
	add(into, META "node_name", member(metadata, "name"));
	add(into, META "node_provider_id", member(json_object_get(node, "spec"), "providerID"));
	add(into, "instance", member(metadata, "name"));
	add_metadata(into, "node", metadata);
	json_array_foreach(addresses, i, address)
	{
		struct slice type = member(address, "type");

		found_label_of(into, META "node_address_", type,
			       first_address(addresses, type.data));
	}
	add_address(into, host, json_object_get(kubelet, "Port"));
	found_target(into, 0);
}

/* Services */

static void add_service(struct found *into, const json_t *service)
{
	const json_t *metadata = json_object_get(service, "metadata"), *port;
	const json_t *spec = json_object_get(service, "spec");
	const json_t *ports = json_object_get(spec, "ports");
	struct slice name = member(metadata, "name"), space = member(metadata, "namespace");
	struct slice type = member(spec, "type");
	size_t mark, i;

	add(into, META "namespace", space);
	add(into, META "service_name", name);
	add(into, META "service_type", type);
	if (slice_is(type, "ExternalName"))
		add(into, META "service_external_name", member(spec, "externalName"));
	else
		add(into, META "service_cluster_ip", member(spec, "clusterIP"));
	if (slice_is(type, "LoadBalancer"))
		add(into, META "service_loadbalancer_ip", member(spec, "loadBalancerIP"));
	add_metadata(into, "service", metadata);
	mark = found_mark(into);
	json_array_foreach(ports, i, port)
	{
		const json_t *number = json_object_get(port, "port");
		struct slice protocol = member(port, "protocol");

		add(into, META "service_port_name", member(port, "name"));
		add_number(into, META "service_port_number", number);
		add(into, META "service_port_protocol",
		    protocol.len ? protocol : SLICE_LITERAL("TCP"));
		found_labelf(into, "__address__", "%.*s.%.*s.svc:%lld", SLICE_FMT(name),
			     SLICE_FMT(space), (long long)json_integer_value(number));
		found_target(into, mark);
	}
}

static void (*const adders[DISCOVERY_ROLES])(struct found *into, const json_t *object) = {
	[DISCOVERY_ROLE_POD] = add_pod,
	[DISCOVERY_ROLE_NODE] = add_node,
	[DISCOVERY_ROLE_SERVICE] = add_service,
};

int kubernetes_answer_read(struct slice list, enum discovery_role role, struct found *into,
			   struct strbuf *ret_next, struct err *err)
{
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX };
	struct json_read read;
	int rc = json_read(list, 0, "Kubernetes' list", &budget, &read, err);
	const json_t *items = json_object_get(read.root, "items"), *object;
	size_t i;

	/* Go writes an empty list as null. */
	if (!rc && !json_is_array(items) && !json_is_null(items))
		rc = err_set(err, ERR_INVALID, "Kubernetes' list: there are no \"items\"");
	json_array_foreach(items, i, object)
	{
		if (into->is_cut)
			break;
		adders[role](into, object);
		found_forget(into, 0);
	}
	strbuf_clear(ret_next);
	strbuf_add_slice(ret_next, member(json_object_get(read.root, "metadata"), "continue"));
	json_read_free(&read);
	return rc;
}
