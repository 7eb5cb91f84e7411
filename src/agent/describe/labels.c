/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/labels.h"

#include "agent/describe/cgroup.h"
#include "agent/describe/text.h"

#define LABELS_MAX 8

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

uint32_t labels_of_process(struct tables *tables, const char *node, const struct process *process,
			   struct slice thread_name)
{
	struct label_list list = { .tables = tables };
	struct cgroup cgroup;

	cgroup_parse(slice_of(process->cgroups), &cgroup);
	add(&list, "node", slice_of(node));
	add(&list, "comm", slice_of(process->name));
	add(&list, "executable", slice_of(process_executable(process)));
	add(&list, "cgroup", cgroup.path);
	add(&list, "systemd_unit", cgroup.systemd_unit);
	add(&list, "container", cgroup.container);
	add(&list, "thread_name", thread_name);
	return tables_label_set(tables, list.items, list.count);
}
