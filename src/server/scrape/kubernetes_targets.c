/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/kubernetes_targets.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/json_read.h"
#include "remote/kubernetes/kubernetes_labels.h"

#define META KUBERNETES_META
#define PODS_SEEN_MAX 1024u /* of one Endpoints or EndpointSlice, which have 1,000 at most */

#define MEMORY_BYTES_MAX ((int64_t)48 << 20) /* of objects that are read: 1,000 pods */

struct making {
	const struct kubernetes_view *view;
	struct found *into;
	struct budget *memory;
};

static void add(struct found *into, const char *name, struct slice value)
{
	found_labelf(into, name, "%.*s", SLICE_FMT(value));
}

static void add_number(struct found *into, const char *name, const json_t *value)
{
	found_labelf(into, name, "%lld", (long long)json_integer_value(value));
}

static void add_label(void *context, const char *prefix, struct slice key, struct slice value)
{
	if (key.len)
		found_label_of(context, prefix, key, value);
	else
		add(context, prefix, value);
}

static struct kubernetes_label_sink sink_of(struct found *into)
{
	return (struct kubernetes_label_sink){ add_label, into };
}

static void add_metadata(struct found *into, const char *what, const json_t *metadata)
{
	const struct kubernetes_label_sink sink = sink_of(into);

	kubernetes_labels_of_metadata(what, metadata, &sink);
}

static void add_address(struct found *into, struct slice host, const json_t *port)
{
	bool is_ip6 = slice_find_byte(host, ':') != SIZE_MAX;

	found_labelf(into, "__address__", is_ip6 ? "[%.*s]:%lld" : "%.*s:%lld", SLICE_FMT(host),
		     (long long)json_integer_value(port));
}

/* Other objects, whose labels are a target's, too */

/* NULL: there is no memory for it. To be freed in any case. */
static const json_t *read_object(const struct making *making, const json_t *text,
				 struct json_read *ret)
{
	struct slice bytes = { json_string_value(text), json_string_length(text) };
	struct err err;

	if (json_read(bytes, 0, "Kubernetes' object", making->memory, ret, &err))
		making->into->is_refused = true;
	return ret->root;
}

/* NULL: there is none. To be freed in any case. */
static const json_t *object_of(const struct making *making, enum kubernetes_resource resource,
			       struct slice namespace_name, struct slice name,
			       struct json_read *ret)
{
	const struct kubernetes_view *view = making->view;
	struct strbuf key = { 0 };
	const json_t *text = NULL;

	*ret = (struct json_read){ 0 };
	strbuf_addf(&key, "%.*s/%.*s", SLICE_FMT(namespace_name), SLICE_FMT(name));
	for (size_t i = 0; !text && i < view->count; i++)
		if (view->sets[i]->resource == resource)
			text = json_object_get(view->sets[i]->texts, strbuf_text(&key));
	strbuf_free(&key);
	return text ? read_object(making, text, ret) : NULL;
}

static void attach_node(const struct making *making, struct slice name)
{
	const struct kubernetes_label_sink sink = sink_of(making->into);
	struct json_read read = { 0 };
	const json_t *node =
		making->view->attaches_nodes && name.len
			? object_of(making, KUBERNETES_NODES, SLICE_LITERAL(""), name, &read)
			: NULL;

	if (node)
		add(making->into, META "node_name", name);
	kubernetes_labels_of_pairs("node", "label",
				   json_object_get(json_object_get(node, "metadata"), "labels"),
				   &sink);
	json_read_free(&read);
}

/* Pods */

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
		struct slice protocol = json_text_at(port, "protocol");

		add_number(into, META "pod_container_port_number", number);
		add(into, META "pod_container_port_name", json_text_at(port, "name"));
		add(into, META "pod_container_port_protocol",
		    protocol.len ? protocol : SLICE_LITERAL("TCP"));
		add_address(into, ip, number);
		found_target(into, mark);
	}
}

struct adding {
	struct found *into;
	struct slice ip;
	size_t mark;
};

static void add_container(void *context, const json_t *container, const json_t *status,
			  bool is_init)
{
	const struct adding *adding = context;
	const struct kubernetes_label_sink sink = sink_of(adding->into);

	kubernetes_labels_of_container(container, status, is_init, &sink);
	add_ports(adding->into, container, adding->ip);
	found_forget(adding->into, adding->mark);
}

static void add_pod_labels(struct found *into, const json_t *pod)
{
	const struct kubernetes_label_sink sink = sink_of(into);

	kubernetes_labels_of_pod(pod, &sink);
}

static void add_pod(const struct making *making, const json_t *pod)
{
	const json_t *status = json_object_get(pod, "status"), *spec = json_object_get(pod, "spec");
	struct slice ip = json_text_at(status, "podIP");
	struct found *into = making->into;
	struct adding adding = { .into = into, .ip = ip };

	if (!ip.len)
		return;
	add_pod_labels(into, pod);
	attach_node(making, json_text_at(spec, "nodeName"));
	adding.mark = found_mark(into);
	kubernetes_each_container(pod, add_container, &adding);
}

/* Nodes */

static struct slice first_address(const json_t *addresses, const char *type)
{
	const json_t *address;
	size_t i;

	json_array_foreach(addresses, i, address)
	{
		if (slice_is(json_text_at(address, "type"), type))
			return json_text_at(address, "address");
	}
	return (struct slice){ "", 0 };
}

static void add_node(const struct making *making, const json_t *node)
{
	struct found *into = making->into;
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
	add(into, META "node_name", json_text_at(metadata, "name"));
	add(into, META "node_provider_id",
	    json_text_at(json_object_get(node, "spec"), "providerID"));
	add(into, "instance", json_text_at(metadata, "name"));
	add_metadata(into, "node", metadata);
	json_array_foreach(addresses, i, address)
	{
		struct slice type = json_text_at(address, "type");

		if (found_is_over(into))
			return;
		found_label_of(into, META "node_address_", type,
			       first_address(addresses, type.data));
	}
	add_address(into, host, json_object_get(kubelet, "Port"));
	found_target(into, 0);
}

/* Services */

static void add_service(const struct making *making, const json_t *service)
{
	struct found *into = making->into;
	const json_t *metadata = json_object_get(service, "metadata"), *port;
	const json_t *spec = json_object_get(service, "spec");
	const json_t *ports = json_object_get(spec, "ports");
	struct slice name = json_text_at(metadata, "name"),
		     space = json_text_at(metadata, "namespace");
	struct slice type = json_text_at(spec, "type");
	size_t mark, i;

	add(into, META "namespace", space);
	add(into, META "service_name", name);
	add(into, META "service_type", type);
	if (slice_is(type, "ExternalName"))
		add(into, META "service_external_name", json_text_at(spec, "externalName"));
	else
		add(into, META "service_cluster_ip", json_text_at(spec, "clusterIP"));
	if (slice_is(type, "LoadBalancer"))
		add(into, META "service_loadbalancer_ip", json_text_at(spec, "loadBalancerIP"));
	add_metadata(into, "service", metadata);
	mark = found_mark(into);
	json_array_foreach(ports, i, port)
	{
		const json_t *number = json_object_get(port, "port");
		struct slice protocol = json_text_at(port, "protocol");

		add(into, META "service_port_name", json_text_at(port, "name"));
		add_number(into, META "service_port_number", number);
		add(into, META "service_port_protocol",
		    protocol.len ? protocol : SLICE_LITERAL("TCP"));
		found_labelf(into, "__address__", "%.*s.%.*s.svc:%lld", SLICE_FMT(name),
			     SLICE_FMT(space), (long long)json_integer_value(number));
		found_target(into, mark);
	}
}

/* Endpoints and EndpointSlices: a service's addresses, joined with the service and its pods */

static void add_service_labels(const struct making *making, struct slice space, struct slice name)
{
	struct json_read read;
	const json_t *service = object_of(making, KUBERNETES_SERVICES, space, name, &read);

	if (service)
		add(making->into, META "service_name", name);
	add_metadata(making->into, "service", json_object_get(service, "metadata"));
	json_read_free(&read);
}

/* The pods of one object, each with those of its ports that a target has been made for. */
struct seen_pods {
	struct seen_pod {
		const json_t *pod;
		json_t *ports; /* numbers */
		struct json_read read;
	} items[PODS_SEEN_MAX];
	size_t count;
};

/* Borrowed; NULL when it is no pod, or none that is known. */
static struct seen_pod *see_pod(const struct making *making, struct seen_pods *seen,
				const json_t *reference)
{
	struct slice space = json_text_at(reference, "namespace"),
		     name = json_text_at(reference, "name");
	struct json_read read;
	const json_t *pod;

	if (!slice_is(json_text_at(reference, "kind"), "Pod"))
		return NULL;
	for (size_t i = 0; i < seen->count; i++) {
		const json_t *metadata = json_object_get(seen->items[i].pod, "metadata");

		if (slice_equal(json_text_at(metadata, "name"), name) &&
		    slice_equal(json_text_at(metadata, "namespace"), space))
			return &seen->items[i];
	}
	if (seen->count == PODS_SEEN_MAX)
		return NULL;
	pod = object_of(making, KUBERNETES_PODS, space, name, &read);
	if (!pod) {
		json_read_free(&read);
		return NULL;
	}
	seen->items[seen->count] = (struct seen_pod){ pod, json_array(), read };
	return &seen->items[seen->count++];
}

static void forget_pods(struct seen_pods *seen)
{
	for (size_t i = 0; i < seen->count; i++) {
		json_read_free(&seen->items[i].read);
		json_decref(seen->items[i].ports);
	}
	free(seen);
}

static void add_container_port(struct found *into, const json_t *container, const json_t *port)
{
	struct slice protocol = json_text_at(port, "protocol");

	add(into, META "pod_container_name", json_text_at(container, "name"));
	add(into, META "pod_container_image", json_text_at(container, "image"));
	add(into, META "pod_container_port_name", json_text_at(port, "name"));
	add_number(into, META "pod_container_port_number", json_object_get(port, "containerPort"));
	add(into, META "pod_container_port_protocol",
	    protocol.len ? protocol : SLICE_LITERAL("TCP"));
}

typedef void port_visit_f(const struct making *making, const struct seen_pod *seen,
			  const json_t *container, const json_t *port, json_int_t number);

static void each_port(const struct making *making, const struct seen_pod *seen, json_int_t number,
		      port_visit_f *visit)
{
	const json_t *containers =
		json_object_get(json_object_get(seen->pod, "spec"), "containers");
	const json_t *container, *port;
	size_t i, j;

	json_array_foreach(containers, i, container)
	{
		const json_t *ports = json_object_get(container, "ports");

		json_array_foreach(ports, j, port)
		{
			if (found_is_over(making->into))
				return;
			visit(making, seen, container, port, number);
		}
	}
}

static void add_if_same(const struct making *making, const struct seen_pod *seen,
			const json_t *container, const json_t *port, json_int_t number)
{
	(void)seen;
	if (json_integer_value(json_object_get(port, "containerPort")) == number)
		add_container_port(making->into, container, port);
}

/* A port that no endpoint names is a target as well. The labels of the object are there. */
static void add_if_unseen(const struct making *making, const struct seen_pod *seen,
			  const json_t *container, const json_t *port, json_int_t number)
{
	const json_t *mine = json_object_get(port, "containerPort"), *other;
	struct slice ip = json_text_at(json_object_get(seen->pod, "status"), "podIP");
	size_t mark = found_mark(making->into), i;

	(void)number;
	json_array_foreach(seen->ports, i, other)
	{
		if (json_integer_value(other) == json_integer_value(mine))
			return;
	}
	if (!ip.len)
		return;
	add_pod_labels(making->into, seen->pod);
	add_container_port(making->into, container, port);
	add_address(making->into, ip, mine);
	found_target(making->into, mark);
}

/* The target of one address and port (NULL: none); its own labels are there already. */
static void add_endpoint(const struct making *making, struct seen_pods *pods,
			 const json_t *reference, struct slice node, struct slice address,
			 const json_t *port, size_t mark)
{
	struct seen_pod *seen = see_pod(making, pods, reference);

	attach_node(making, slice_is(json_text_at(reference, "kind"), "Node")
				    ? json_text_at(reference, "name")
				    : node);
	if (seen) {
		add_pod_labels(making->into, seen->pod);
		if (port) {
			each_port(making, seen, json_integer_value(port), add_if_same);
			json_array_append_new(seen->ports, json_integer(json_integer_value(port)));
		}
	}
	if (port)
		add_address(making->into, address, port);
	else
		add(making->into, "__address__", address);
	found_target(making->into, mark);
}

static void add_reference(struct found *into, const char *kind_label, const char *name_label,
			  const json_t *reference)
{
	add(into, kind_label, json_text_at(reference, "kind"));
	add(into, name_label, json_text_at(reference, "name"));
}

static void add_subset(const struct making *making, struct seen_pods *pods, const json_t *subset,
		       const char *list, const char *is_ready)
{
	const json_t *ports = json_object_get(subset, "ports"), *port, *address;
	const json_t *addresses = json_object_get(subset, list);
	struct found *into = making->into;
	size_t i, j, mark = found_mark(into);

	json_array_foreach(ports, i, port)
	{
		json_array_foreach(addresses, j, address)
		{
			struct slice node = json_text_at(address, "nodeName");
			const json_t *reference = json_object_get(address, "targetRef");
			struct slice protocol = json_text_at(port, "protocol");

			if (found_is_over(into))
				return;
			add(into, META "endpoint_port_name", json_text_at(port, "name"));
			add(into, META "endpoint_port_protocol",
			    protocol.len ? protocol : SLICE_LITERAL("TCP"));
			add(into, META "endpoint_ready", slice_of(is_ready));
			add_reference(into, META "endpoint_address_target_kind",
				      META "endpoint_address_target_name", reference);
			add(into, META "endpoint_node_name", node);
			add(into, META "endpoint_hostname", json_text_at(address, "hostname"));
			add_endpoint(making, pods, reference, node, json_text_at(address, "ip"),
				     json_object_get(port, "port"), mark);
		}
	}
}

static void add_endpoints(const struct making *making, const json_t *endpoints)
{
	const json_t *metadata = json_object_get(endpoints, "metadata"), *subset;
	const json_t *subsets = json_object_get(endpoints, "subsets");
	struct slice space = json_text_at(metadata, "namespace"),
		     name = json_text_at(metadata, "name");
	struct seen_pods *pods = mem_new(struct seen_pods);
	size_t i;

	add(making->into, META "namespace", space);
	add(making->into, META "endpoints_name", name);
	add_service_labels(making, space, name);
	add_metadata(making->into, "endpoints", metadata);
	json_array_foreach(subsets, i, subset)
	{
		add_subset(making, pods, subset, "addresses", "true");
		add_subset(making, pods, subset, "notReadyAddresses", "false");
	}
	for (i = 0; i < pods->count; i++)
		each_port(making, &pods->items[i], 0, add_if_unseen);
	forget_pods(pods);
}

static void add_flag(struct found *into, const char *name, const json_t *flag)
{
	if (json_is_boolean(flag))
		add(into, name, slice_of(json_is_true(flag) ? "true" : "false"));
}

static void add_slice_port(struct found *into, const json_t *port)
{
	const json_t *number = json_object_get(port, "port");

	add(into, META "endpointslice_port_name", json_text_at(port, "name"));
	add(into, META "endpointslice_port_protocol", json_text_at(port, "protocol"));
	if (json_is_integer(number))
		add_number(into, META "endpointslice_port", number);
	add(into, META "endpointslice_port_app_protocol", json_text_at(port, "appProtocol"));
}

static void add_slice_endpoint(struct found *into, const json_t *endpoint)
{
	const json_t *conditions = json_object_get(endpoint, "conditions"), *value;
	const char *key;

	add_flag(into, META "endpointslice_endpoint_conditions_ready",
		 json_object_get(conditions, "ready"));
	add_flag(into, META "endpointslice_endpoint_conditions_serving",
		 json_object_get(conditions, "serving"));
	add_flag(into, META "endpointslice_endpoint_conditions_terminating",
		 json_object_get(conditions, "terminating"));
	add(into, META "endpointslice_endpoint_hostname", json_text_at(endpoint, "hostname"));
	add(into, META "endpointslice_endpoint_node_name", json_text_at(endpoint, "nodeName"));
	add(into, META "endpointslice_endpoint_zone", json_text_at(endpoint, "zone"));
	add_reference(into, META "endpointslice_address_target_kind",
		      META "endpointslice_address_target_name",
		      json_object_get(endpoint, "targetRef"));
	json_object_foreach(json_object_get(endpoint, "deprecatedTopology"), key, value)
	{
		found_label_of(into, META "endpointslice_endpoint_topology_", slice_of(key),
			       json_text_of(value));
		found_label_of(into, META "endpointslice_endpoint_topology_present_", slice_of(key),
			       SLICE_LITERAL("true"));
	}
}

static void add_slice_addresses(const struct making *making, struct seen_pods *pods,
				const json_t *endpoint, const json_t *port)
{
	const json_t *addresses = json_object_get(endpoint, "addresses"), *address;
	const json_t *number = json_object_get(port, "port");
	size_t i, mark = found_mark(making->into);

	json_array_foreach(addresses, i, address)
	{
		if (found_is_over(making->into))
			return;
		add_slice_port(making->into, port);
		add_slice_endpoint(making->into, endpoint);
		add_endpoint(making, pods, json_object_get(endpoint, "targetRef"),
			     json_text_at(endpoint, "nodeName"), json_text_of(address),
			     json_is_integer(number) ? number : NULL, mark);
	}
}

static void add_endpoint_slice(const struct making *making, const json_t *slice)
{
	const json_t *metadata = json_object_get(slice, "metadata"), *endpoint, *port;
	const json_t *endpoints = json_object_get(slice, "endpoints");
	const json_t *ports = json_object_get(slice, "ports");
	struct slice space = json_text_at(metadata, "namespace");
	struct seen_pods *pods = mem_new(struct seen_pods);
	size_t i, j;

	add(making->into, META "namespace", space);
	add(making->into, META "endpointslice_address_type", json_text_at(slice, "addressType"));
	add(making->into, META "endpointslice_name", json_text_at(metadata, "name"));
	add_metadata(making->into, "endpointslice", metadata);
	add_service_labels(
		making, space,
		json_text_at(json_object_get(metadata, "labels"), "kubernetes.io/service-name"));
	json_array_foreach(endpoints, i, endpoint)
	{
		json_array_foreach(ports, j, port)
		{
			if (found_is_over(making->into))
				break;
			add_slice_addresses(making, pods, endpoint, port);
		}
	}
	for (i = 0; i < pods->count; i++)
		each_port(making, &pods->items[i], 0, add_if_unseen);
	forget_pods(pods);
}

/* Ingresses */

/* "*.example.org" stands for one more part. */
static bool is_host_of(struct slice pattern, struct slice host)
{
	size_t dot = slice_find_byte(host, '.');

	if (slice_equal(pattern, host))
		return true;
	return slice_starts_with(pattern, SLICE_LITERAL("*.")) && dot != SIZE_MAX &&
	       slice_equal(slice_tail(pattern, 1), slice_tail(host, dot));
}

static const char *scheme_of(const json_t *spec, struct slice host)
{
	const json_t *tls = json_object_get(spec, "tls"), *entry, *pattern;
	size_t i, j;

	json_array_foreach(tls, i, entry)
	{
		const json_t *hosts = json_object_get(entry, "hosts");

		json_array_foreach(hosts, j, pattern)
		{
			if (is_host_of(json_text_of(pattern), host))
				return "https";
		}
	}
	return "http";
}

static void add_ingress_path(struct found *into, const char *scheme, struct slice host,
			     struct slice path)
{
	size_t mark = found_mark(into);

	add(into, META "ingress_scheme", slice_of(scheme));
	add(into, META "ingress_host", host);
	add(into, META "ingress_path", path.len ? path : SLICE_LITERAL("/"));
	add(into, "__address__", host);
	found_target(into, mark);
}

static void add_ingress(const struct making *making, const json_t *ingress)
{
	const json_t *metadata = json_object_get(ingress, "metadata"), *rule, *entry;
	const json_t *spec = json_object_get(ingress, "spec");
	const json_t *all = json_object_get(spec, "rules");
	struct found *into = making->into;
	size_t i, j;

	add(into, META "namespace", json_text_at(metadata, "namespace"));
	add(into, META "ingress_name", json_text_at(metadata, "name"));
	add(into, META "ingress_class_name", json_text_at(spec, "ingressClassName"));
	add_metadata(into, "ingress", metadata);
	json_array_foreach(all, i, rule)
	{
		const json_t *http = json_object_get(rule, "http");
		const json_t *paths = json_object_get(http, "paths");
		struct slice host = json_text_at(rule, "host");
		const char *scheme = scheme_of(spec, host);

		if (found_is_over(into))
			return;
		if (!json_is_object(http))
			add_ingress_path(into, scheme, host, (struct slice){ "", 0 });
		json_array_foreach(paths, j, entry)
		{
			add_ingress_path(into, scheme, host, json_text_at(entry, "path"));
		}
	}
}

static const struct {
	enum kubernetes_resource resource; /* whose objects are the targets */
	unsigned needs;			   /* besides */
	void (*add)(const struct making *making, const json_t *object);
} roles[DISCOVERY_ROLES] = {
	[DISCOVERY_ROLE_POD] = { KUBERNETES_PODS, 0, add_pod },
	[DISCOVERY_ROLE_NODE] = { KUBERNETES_NODES, 0, add_node },
	[DISCOVERY_ROLE_SERVICE] = { KUBERNETES_SERVICES, 0, add_service },
	[DISCOVERY_ROLE_ENDPOINTS] = { KUBERNETES_ENDPOINTS,
				       1u << KUBERNETES_PODS | 1u << KUBERNETES_SERVICES,
				       add_endpoints },
	[DISCOVERY_ROLE_SLICE] = { KUBERNETES_SLICES,
				   1u << KUBERNETES_PODS | 1u << KUBERNETES_SERVICES,
				   add_endpoint_slice },
	[DISCOVERY_ROLE_INGRESS] = { KUBERNETES_INGRESSES, 0, add_ingress },
};

unsigned kubernetes_targets_needs(enum discovery_role role, bool attaches_nodes)
{
	return 1u << roles[role].resource | roles[role].needs |
	       (attaches_nodes ? 1u << KUBERNETES_NODES : 0);
}

void kubernetes_targets_make(const struct kubernetes_view *view, enum discovery_role role,
			     struct found *into)
{
	struct budget memory = { .max_bytes = MEMORY_BYTES_MAX, .parent = &discovery_memory };
	const struct making making = { view, into, &memory };

	for (size_t i = 0; i < view->count; i++) {
		const struct kubernetes_objects *set = view->sets[i];
		const json_t *text;
		const char *key;

		if (set->resource != roles[role].resource)
			continue;
		json_object_foreach(set->texts, key, text)
		{
			struct json_read read;

			if (found_is_over(into))
				break;
			roles[role].add(&making, read_object(&making, text, &read));
			found_forget(into, 0);
			json_read_free(&read);
		}
	}
}
