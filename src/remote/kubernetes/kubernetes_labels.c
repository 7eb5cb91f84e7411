/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/kubernetes/kubernetes_labels.h"

#include <ctype.h>
#include <stdio.h>

#include "codec/wire/json_read.h"

#define POD KUBERNETES_META "pod_"
#define PREFIX_BYTES 64

static void add(const struct kubernetes_label_sink *sink, const char *name, struct slice value)
{
	sink->add(sink->context, name, (struct slice){ "", 0 }, value);
}

void kubernetes_labels_of_pairs(const char *what, const char *kind, json_t *pairs,
				const struct kubernetes_label_sink *sink)
{
	char value_prefix[PREFIX_BYTES], present_prefix[PREFIX_BYTES];
	const json_t *value;
	const char *key;

	snprintf(value_prefix, sizeof(value_prefix), KUBERNETES_META "%s_%s_", what, kind);
	snprintf(present_prefix, sizeof(present_prefix), KUBERNETES_META "%s_%spresent_", what,
		 kind);
	json_object_foreach(pairs, key, value)
	{
		if (!key[0])
			continue;
		sink->add(sink->context, value_prefix, slice_of(key), json_text_of(value));
		sink->add(sink->context, present_prefix, slice_of(key), SLICE_LITERAL("true"));
	}
}

void kubernetes_labels_of_metadata(const char *what, const json_t *metadata,
				   const struct kubernetes_label_sink *sink)
{
	kubernetes_labels_of_pairs(what, "label", json_object_get(metadata, "labels"), sink);
	kubernetes_labels_of_pairs(what, "annotation", json_object_get(metadata, "annotations"),
				   sink);
}

static void add_ready(const struct kubernetes_label_sink *sink, const json_t *status)
{
	const json_t *conditions = json_object_get(status, "conditions"), *condition;
	struct slice is_ready = SLICE_LITERAL("unknown");
	char text[16];
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		if (slice_is(json_text_at(condition, "type"), "Ready")) {
			is_ready = json_text_at(condition, "status");
			break;
		}
	}
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(is_ready));
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	add(sink, POD "ready", slice_of(text));
}

const json_t *kubernetes_controller(const json_t *metadata)
{
	const json_t *owners = json_object_get(metadata, "ownerReferences"), *owner;
	size_t i;

	json_array_foreach(owners, i, owner)
	{
		if (json_is_true(json_object_get(owner, "controller")))
			return owner;
	}
	return NULL;
}

void kubernetes_labels_of_pod(const json_t *pod, const struct kubernetes_label_sink *sink)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const json_t *status = json_object_get(pod, "status");
	const json_t *controller = kubernetes_controller(metadata);

	add(sink, KUBERNETES_META "namespace", json_text_at(metadata, "namespace"));
	add(sink, POD "name", json_text_at(metadata, "name"));
	add(sink, POD "ip", json_text_at(status, "podIP"));
	add(sink, POD "phase", json_text_at(status, "phase"));
	add(sink, POD "node_name", json_text_at(json_object_get(pod, "spec"), "nodeName"));
	add(sink, POD "host_ip", json_text_at(status, "hostIP"));
	add(sink, POD "uid", json_text_at(metadata, "uid"));
	add_ready(sink, status);
	add(sink, POD "controller_kind", json_text_at(controller, "kind"));
	add(sink, POD "controller_name", json_text_at(controller, "name"));
	kubernetes_labels_of_metadata("pod", metadata, sink);
}

static const json_t *status_of(const json_t *statuses, struct slice name)
{
	const json_t *status;
	size_t i;

	json_array_foreach(statuses, i, status)
	{
		if (slice_equal(json_text_at(status, "name"), name))
			return status;
	}
	return NULL;
}

void kubernetes_each_container(const json_t *pod, kubernetes_container_f *visit, void *context)
{
	static const struct {
		const char *list, *statuses;
		bool is_init;
	} kinds[] = {
		{ "containers", "containerStatuses", false },
		{ "initContainers", "initContainerStatuses", true },
	};
	const json_t *spec = json_object_get(pod, "spec"), *container;
	size_t j;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const json_t *statuses =
			json_object_get(json_object_get(pod, "status"), kinds[i].statuses);

		json_array_foreach(json_object_get(spec, kinds[i].list), j, container)
		{
			visit(context, container,
			      status_of(statuses, json_text_at(container, "name")),
			      kinds[i].is_init);
		}
	}
}

void kubernetes_labels_of_container(const json_t *container, const json_t *status, bool is_init,
				    const struct kubernetes_label_sink *sink)
{
	add(sink, POD "container_name", json_text_at(container, "name"));
	add(sink, POD "container_id", json_text_at(status, "containerID"));
	add(sink, POD "container_image", json_text_at(container, "image"));
	add(sink, POD "container_init", slice_of(is_init ? "true" : "false"));
}
