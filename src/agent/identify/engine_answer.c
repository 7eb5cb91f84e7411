/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/engine_answer.h"

#include "agent/identify/workload.h"
#include "codec/wire/json_read.h"

/* What the kubelet notes on the containers that it has Docker make. */
static void add_kubernetes(struct meta_labels *ret, const json_t *labels)
{
	static const struct {
		const char *key, *name;
	} known[] = {
		{ "io.kubernetes.pod.namespace", WORKLOAD_META "namespace" },
		{ "io.kubernetes.pod.name", WORKLOAD_META "pod_name" },
		{ "io.kubernetes.pod.uid", WORKLOAD_META "pod_uid" },
		{ "io.kubernetes.container.name", WORKLOAD_META "pod_container_name" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		meta_labels_add(ret, known[i].name, json_text_at(labels, known[i].key));
}

static void add_labels(struct meta_labels *ret, json_t *labels)
{
	const char *key;
	json_t *value;

	json_object_foreach(labels, key, value)
	{
		if (!json_is_string(value))
			continue;
		meta_labels_add_of(ret, "__meta_docker_container_label_", slice_of(key),
				   json_text_of(value));
		meta_labels_add_of(ret, "__meta_docker_container_labelpresent_", slice_of(key),
				   SLICE_LITERAL("true"));
	}
	add_kubernetes(ret, labels);
}

int engine_answer_read(struct slice json, struct slice id, struct meta_labels *ret, struct err *err)
{
	json_error_t problem;
	json_t *answer = json_loadb(json.data ? json.data : "", json.len, 0, &problem);
	const json_t *config = json_object_get(answer, "Config");
	struct slice name = json_text_at(answer, "Name");
	int code = 0;

	if (!answer) {
		code = err_set(err, ERR_INVALID, "no JSON: %s in line %d", problem.text,
			       problem.line);
	} else if (!slice_equal(json_text_at(answer, "Id"), id)) {
		code = err_set(err, ERR_INVALID, "the answer is not about this container");
	} else {
		if (slice_starts_with(name, SLICE_LITERAL("/")))
			name = slice_tail(name, 1);
		meta_labels_add(ret, "__meta_docker_container_id", id);
		meta_labels_add(ret, "__meta_docker_container_name", name);
		meta_labels_add(ret, "__meta_docker_container_image",
				json_text_at(config, "Image"));
		add_labels(ret, json_object_get(config, "Labels"));
	}
	json_decref(answer);
	return code;
}
