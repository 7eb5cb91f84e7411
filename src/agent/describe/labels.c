/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/labels.h"

#include "agent/describe/text.h"
#include "agent/identify/cgroup.h"
#include "agent/identify/workload.h"

#define LABELS_MAX 16

struct label_list {
	struct tables *tables;
	struct label items[LABELS_MAX];
	uint32_t count;
};

static void add(struct label_list *list, const char *name, struct slice value)
{
	if (!value.len)
		return;
	list->items[list->count++] = (struct label){
		.name = tables_string(list->tables, slice_of(name)),
		.value = text_intern(list->tables, value),
	};
}

/* The first of these that is there. */
static struct slice first_of(const struct meta_labels *meta, const char *const *names)
{
	for (; *names; names++) {
		struct slice value = meta_labels_find(meta, *names);

		if (value.len)
			return value;
	}
	return (struct slice){ 0 };
}

static void add_first(struct label_list *list, const char *name, const struct meta_labels *meta,
		      const char *const *names)
{
	add(list, name, first_of(meta, names));
}

static void add_container(struct label_list *list, const struct cgroup *cgroup,
			  const struct meta_labels *meta)
{
	static const char *const names[] = { WORKLOAD_META "pod_container_name",
					     "__meta_docker_container_name", NULL };
	static const char *const images[] = { WORKLOAD_META "pod_container_image",
					      "__meta_docker_container_image", NULL };
	static const char *const namespaces[] = { WORKLOAD_META "namespace", NULL };
	static const char *const pods[] = { WORKLOAD_META "pod_name", NULL };
	static const char *const workloads[] = { WORKLOAD_META "pod_workload", NULL };
	static const char *const apps[] = { WORKLOAD_META "pod_label_app_kubernetes_io_name",
					    WORKLOAD_META "pod_label_app",
					    WORKLOAD_META "pod_label_k8s_app", NULL };
	struct slice name = first_of(meta, names);

	add(list, "container", name.len ? name : cgroup->container);
	if (cgroup->runtime != CGROUP_RUNTIME_LXC)
		add(list, "container_id", cgroup->container);
	add_first(list, "image", meta, images);
	add_first(list, "namespace", meta, namespaces);
	add_first(list, "pod", meta, pods);
	add_first(list, "workload", meta, workloads);
	add_first(list, "app", meta, apps);
}

uint32_t labels_of_process(struct tables *tables, const struct label_sources *sources,
			   const struct process *process, struct slice thread_name)
{
	struct label_list list = { .tables = tables };
	struct meta_labels meta = { 0 };
	struct cgroup cgroup;

	cgroup_parse(slice_of(process->cgroups), &cgroup);
	if (sources->containers && cgroup.container.len)
		container_names_find(sources->containers, cgroup.container, &meta);
	add(&list, "node", slice_of(sources->node));
	add(&list, "comm", slice_of(process->name));
	add(&list, "executable", slice_of(process_executable(process)));
	add(&list, "cgroup", cgroup.path);
	add(&list, "systemd_unit", cgroup.systemd_unit);
	add_container(&list, &cgroup, &meta);
	add(&list, "thread_name", thread_name);
	meta_labels_free(&meta);
	return tables_label_set(tables, list.items, list.count);
}
