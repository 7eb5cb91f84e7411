/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_labels - turns an object of Kubernetes into the labels of Prometheus' discovery,
 * __meta_kubernetes_*, which Parca's agent has, too.
 *
 *   of a pod        namespace, pod_name, pod_ip, pod_phase, pod_ready, pod_node_name, pod_host_ip,
 *                   pod_uid, pod_controller_{kind,name}, and its metadata
 *   of a container  pod_container_{name,id,image,init}
 *   of metadata     WHAT_label_*, WHAT_labelpresent_*, WHAT_annotation_*, WHAT_annotationpresent_*
 *
 * Texts are valid while the object lives. Any thread.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBERNETES_LABELS_H
#define FIRN_REMOTE_KUBERNETES_KUBERNETES_LABELS_H

#include <jansson.h>

#include "base/slice.h"

#define KUBERNETES_META "__meta_kubernetes_"

/*
 * Receives labels. The name is `prefix` if `key` is empty, else the prefix and the key, which may
 * have characters that are invalid in a label name. Values may be empty.
 */
struct kubernetes_label_sink {
	void (*add)(void *context, const char *prefix, struct slice key, struct slice value);
	void *context;
};

void kubernetes_labels_of_pod(const json_t *pod, const struct kubernetes_label_sink *sink);

/* `what`: "pod", "node", ...; `kind`: "label", "annotation". Two labels per pair: value, presence.
 */
void kubernetes_labels_of_pairs(const char *what, const char *kind, json_t *pairs,
				const struct kubernetes_label_sink *sink);
void kubernetes_labels_of_metadata(const char *what, const json_t *metadata,
				   const struct kubernetes_label_sink *sink);

/* Visits the containers of a pod: the regular ones and the init containers. */
typedef void kubernetes_container_f(void *context, const json_t *container, const json_t *status,
				    bool is_init);
void kubernetes_each_container(const json_t *pod, kubernetes_container_f *visit, void *context);

/* `status` may be NULL: the container has not begun. */
void kubernetes_labels_of_container(const json_t *container, const json_t *status, bool is_init,
				    const struct kubernetes_label_sink *sink);

/* The owner that controls an object, by its metadata, or NULL. */
const json_t *kubernetes_controller(const json_t *metadata);

#endif
