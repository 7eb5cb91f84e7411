/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/workload.h"

#define POD WORKLOAD_META "pod_"
#define POD_LABEL POD "label_"

/* The parts of "NAME-LAST"; false when there is no such part. */
static bool cut_last(struct slice text, struct slice *ret_name, struct slice *ret_last)
{
	size_t dash = text.len;

	while (dash && text.data[dash - 1] != '-')
		dash--;
	if (dash < 2 || dash == text.len)
		return false;
	*ret_name = slice_from(text.data, dash - 1);
	*ret_last = slice_tail(text, dash);
	return true;
}

static bool is_number(struct slice text)
{
	uint64_t number;

	return slice_parse_u64(text, &number);
}

/* What is found, copied: the labels' text moves when one is added. */
static void add(struct meta_labels *labels, const char *kind, struct slice controller,
		const char *workload_kind, struct slice workload)
{
	struct strbuf copy = { 0 };

	strbuf_add_slice(&copy, controller);
	strbuf_add_slice(&copy, workload);
	meta_labels_add(labels, POD "controller_kind", slice_of(kind));
	meta_labels_add(labels, POD "controller_name",
			slice_from(strbuf_text(&copy), controller.len));
	meta_labels_add(labels, POD "workload",
			slice_from(strbuf_text(&copy) + controller.len, workload.len));
	meta_labels_add(labels, POD "workload_kind", slice_of(workload_kind));
	strbuf_free(&copy);
}

bool workload_of_replica_set(struct slice name, struct slice hash, struct slice *ret)
{
	struct slice last;

	return hash.len && cut_last(name, ret, &last) && slice_equal(last, hash);
}

/* True if it has only the letters of Kubernetes' hashes, which cannot form words. */
static bool is_hash(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!strchr("bcdfghjklmnpqrstvwxz2456789", text.data[i]))
			return false;
	return text.len >= 5 && text.len <= 10;
}

void workload_guess(struct slice kind, struct slice name, struct strbuf *ret,
		    struct strbuf *ret_kind)
{
	struct slice first, last;
	bool has_parts = cut_last(name, &first, &last);

	strbuf_clear(ret);
	strbuf_clear(ret_kind);
	if (has_parts && slice_is(kind, "ReplicaSet") && is_hash(last)) {
		kind = SLICE_LITERAL("Deployment");
		name = first;
	} else if (has_parts && slice_is(kind, "Job") && last.len >= 8 && is_number(last)) {
		kind = SLICE_LITERAL("CronJob");
		name = first;
	}
	strbuf_add_slice(ret, name);
	strbuf_add_slice(ret_kind, kind);
}

void workload_add(struct meta_labels *labels)
{
	struct slice pod = meta_labels_find(labels, POD "name");
	struct slice hash = meta_labels_find(labels, POD_LABEL "pod_template_hash");
	struct slice job = meta_labels_find(labels, POD_LABEL "batch_kubernetes_io_job_name");
	struct slice name, last, deployment;

	if (!job.len)
		job = meta_labels_find(labels, POD_LABEL "job_name");
	if (job.len) {
		add(labels, "Job", job, "Job", job);
		return;
	}
	if (!cut_last(pod, &name, &last))
		return;
	if (hash.len) {
		if (workload_of_replica_set(name, hash, &deployment))
			add(labels, "ReplicaSet", name, "Deployment", deployment);
	} else if (meta_labels_find(labels, POD_LABEL "statefulset_kubernetes_io_pod_name").len) {
		if (is_number(last))
			add(labels, "StatefulSet", name, "StatefulSet", name);
	} else if (meta_labels_find(labels, POD_LABEL "controller_revision_hash").len &&
		   meta_labels_find(labels, POD_LABEL "pod_template_generation").len) {
		add(labels, "DaemonSet", name, "DaemonSet", name);
	}
}
