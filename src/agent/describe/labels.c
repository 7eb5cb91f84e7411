/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "agent/describe/text.h"
#include "agent/identify/cgroup.h"
#include "agent/identify/otel_context.h"
#include "agent/identify/process_reading.h"
#include "agent/identify/workload.h"

#define LABELS_MAX 24
#define META "__meta_"

/* Labels go straight to the tables, or to where rules see them. */
struct label_list {
	struct tables *tables;
	struct rule_labels *known; /* NULL = to the tables */
	struct label items[LABELS_MAX];
	uint32_t count;
};

static void add_known(struct rule_labels *known, const char *name, struct slice value)
{
	char clean[TEXT_BYTES_MAX];

	rule_labels_put(known, slice_of(name), text_clean(value, clean));
}

static void add(struct label_list *list, const char *name, struct slice value)
{
	if (!value.len)
		return;
	if (list->known) {
		add_known(list->known, name, value);
		return;
	}
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

static void add_cloud(struct label_list *list, const struct meta_labels *meta)
{
	add(list, "instance_id", meta_labels_find(meta, CLOUD_META "instance_id"));
	add(list, "instance_type", meta_labels_find(meta, CLOUD_META "instance_type"));
	add(list, "zone", meta_labels_find(meta, CLOUD_META "zone"));
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

/* What OpenTelemetry's libraries call a program that nobody has given a name. */
static bool is_a_name(struct slice service)
{
	return !slice_starts_with(service, SLICE_LITERAL("unknown_service"));
}

static void add_service(struct label_list *list, const struct process *process,
			const struct label_file *file)
{
	static const char *const names[] = { OTEL_META "service_name", ENV_META "DD_SERVICE",
					     NULL };
	static const char *const versions[] = { OTEL_META "service_version", ENV_META "DD_VERSION",
						NULL };
	static const char *const environments[] = { OTEL_META "deployment_environment_name",
						    OTEL_META "deployment_environment",
						    ENV_META "DD_ENV", NULL };
	static const char *const revisions[] = { OTEL_META "vcs_ref_head_revision",
						 ENV_META "DD_GIT_COMMIT_SHA", NULL };
	const struct meta_labels *said = &process->attributes;
	struct slice name = first_of(said, names), version = first_of(said, versions);
	struct slice revision = first_of(said, revisions);

	if (!is_a_name(name))
		name = first_of(said, names + 1);
	if (!version.len && file->origin)
		version = slice_of(file->origin->version);
	if (!revision.len && file->origin)
		revision = slice_of(file->origin->revision);
	add(list, "service_name", name);
	add(list, "version", version);
	add_first(list, "environment", said, environments);
	add(list, "vcs_revision", revision);
}

static void add_number(struct rule_labels *known, const char *name, uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRIu32, number);
	add_known(known, name, slice_of(text));
}

static void add_executable_name(struct rule_labels *known, const char *path)
{
	struct slice executable = slice_of(path);
	const char *slash = executable.len ? memrchr(executable.data, '/', executable.len) : NULL;

	if (slash)
		executable = slice_tail(executable, (size_t)(slash - executable.data) + 1);
	add_known(known, META "process_executable_name", executable);
}

static void add_file(struct rule_labels *known, const struct label_file *file)
{
	if (file->elf)
		add_known(known, META "process_executable_build_id", slice_of(file->elf->build_id));
	if (!file->origin)
		return;
	add_known(known, META "process_executable_compiler", slice_of(file->origin->compiler));
	add_known(known, META "process_executable_static",
		  slice_of(file->origin->is_static ? "true" : "false"));
	add_known(known, META "process_executable_stripped",
		  slice_of(file->origin->is_stripped ? "true" : "false"));
}

static void add_all_meta(struct rule_labels *known, const struct meta_labels *meta)
{
	for (size_t i = 0; i < meta->count; i++)
		rule_labels_put(known, meta_labels_name(meta, i), meta_labels_value(meta, i));
}

/* What rules may ask for beside the labels. */
static void add_meta(struct rule_labels *known, const struct process *process,
		     const struct label_file *file, const struct cgroup *cgroup,
		     const struct meta_labels *container)
{
	struct utsname system;

	add_all_meta(known, container);
	add_all_meta(known, &process->attributes);
	add_file(known, file);
	add_number(known, META "process_pid", process->identity.pid);
	add_number(known, META "process_ppid", process->parent_pid);
	add_known(known, META "process_cgroup", cgroup->path);
	add_executable_name(known, process_executable(process));
	if (cgroup->runtime == CGROUP_RUNTIME_LXC)
		add_known(known, META "lxc_container_id", cgroup->container);
	if (!meta_labels_find(container, WORKLOAD_META "pod_uid").len)
		add_known(known, WORKLOAD_META "pod_uid", slice_of(cgroup->pod_uid));
	if (uname(&system))
		return;
	add_known(known, META "system_kernel_release", slice_of(system.release));
	add_known(known, META "system_kernel_machine", slice_of(system.machine));
}

/* The API server knows best: the runtime has a pod's labels as they were when it began. */
static void find_container(const struct label_sources *sources, const struct process *process,
			   struct cgroup *ret_cgroup, struct meta_labels *ret)
{
	struct meta_labels runtime = { 0 };

	cgroup_parse(slice_of(process->cgroups), ret_cgroup);
	cloud_names_find(sources->cloud, ret);
	pod_names_find(sources->pods, ret_cgroup, ret);
	if (sources->containers && ret_cgroup->container.len &&
	    container_names_find(sources->containers, ret_cgroup->container, &runtime))
		meta_labels_fill(ret, &runtime);
	meta_labels_free(&runtime);
}

static void add_all(struct label_list *list, const struct label_sources *sources,
		    const struct process *process, const struct label_file *file,
		    const struct cgroup *cgroup, const struct meta_labels *meta,
		    struct slice thread_name)
{
	add(list, "node", slice_of(sources->node));
	add(list, "comm", slice_of(process->name));
	add(list, "executable", slice_of(process_executable(process)));
	add(list, "cgroup", cgroup->path);
	add(list, "systemd_unit", cgroup->systemd_unit);
	add_container(list, cgroup, meta);
	add_cloud(list, meta);
	add_service(list, process, file);
	add(list, "thread_name", thread_name);
}

void labels_known(const struct label_sources *sources, const struct process *process,
		  const struct label_file *file, struct slice thread_name, struct rule_labels *ret)
{
	struct label_list list = { .known = ret };
	struct meta_labels container = { 0 };
	struct cgroup cgroup;

	find_container(sources, process, &cgroup, &container);
	add_all(&list, sources, process, file, &cgroup, &container, thread_name);
	add_meta(ret, process, file, &cgroup, &container);
	meta_labels_free(&container);
}

static uint32_t set_of_rules(struct tables *tables, const struct rule_labels *labels)
{
	struct label items[TABLES_LABELS_PER_SET_MAX];
	uint32_t count = 0;

	for (; count < labels->count && count < TABLES_LABELS_PER_SET_MAX; count++)
		items[count] = (struct label){
			.name = text_intern(tables, labels->labels[count].name),
			.value = text_intern(tables, labels->labels[count].value),
		};
	return tables_label_set(tables, items, count);
}

static uint32_t set_by_rules(struct tables *tables, const struct label_sources *sources,
			     const struct process *process, const struct label_file *file,
			     struct slice thread_name)
{
	uint32_t id = LABELS_DROPPED;
	struct rule_labels labels;

	rule_labels_init(&labels);
	labels_known(sources, process, file, thread_name, &labels);
	if (agent_config_apply(sources->config, &labels))
		id = set_of_rules(tables, &labels);
	rule_labels_free(&labels);
	return id;
}

struct label_file labels_file(const struct process *process)
{
	const struct binary *binary = process_binary(process);

	if (!binary || !binary->elf)
		return (struct label_file){ 0 };
	return (struct label_file){ binary->elf, &binary->origin };
}

uint32_t labels_of_process(struct tables *tables, const struct label_sources *sources,
			   const struct process *process, struct slice thread_name)
{
	struct label_list list = { .tables = tables };
	struct label_file file = labels_file(process);
	struct meta_labels container = { 0 };
	struct cgroup cgroup;

	if (sources->config)
		return set_by_rules(tables, sources, process, &file, thread_name);
	find_container(sources, process, &cgroup, &container);
	add_all(&list, sources, process, &file, &cgroup, &container, thread_name);
	meta_labels_free(&container);
	return tables_label_set(tables, list.items, list.count);
}
