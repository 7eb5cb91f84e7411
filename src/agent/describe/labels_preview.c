/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/labels_preview.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/identify/cgroup.h"
#include "agent/procs/proc_stat.h"
#include "agent/procs/process_attributes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/printable.h"

#define SETTLE_NS (2 * CLOCK_NS_PER_S)
#define STAT_BYTES_MAX 1024

struct preview {
	struct process **processes;
	size_t count, capacity;
};

/* What the kernel would say of it with a sample; false when it has ended. */
static bool read_head(int proc, uint32_t pid, struct record_head *ret)
{
	char path[32], text[STAT_BYTES_MAX];
	struct proc_stat stat;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%" PRIu32 "/stat", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text));
	close(fd);
	if (len <= 0 || !proc_stat_parse(slice_from(text, (size_t)len), &stat) || stat.ended)
		return false;
	*ret = (struct record_head){ .process_start_ns = stat.start_ticks * PROC_STAT_NS_PER_TICK,
				     .tgid = pid,
				     .tid = pid,
				     .parent_tgid = stat.parent_pid };
	memcpy(ret->process_name, stat.name.data,
	       stat.name.len < SAMPLE_NAME_BYTES ? stat.name.len : SAMPLE_NAME_BYTES);
	return true;
}

static void add_process(struct preview *preview, const struct record_head *head)
{
	struct process *process = process_new(head, clock_monotonic_ns());

	process_describe(process, NULL, NULL);
	if (!process_executable(process)) {
		process_free(process); /* a kernel thread, or it has ended */
		return;
	}
	mem_grow(preview->processes, preview->count, preview->capacity);
	preview->processes[preview->count++] = process;
}

static int by_pid(const void *a, const void *b)
{
	uint32_t left = (*(struct process *const *)a)->identity.pid;
	uint32_t right = (*(struct process *const *)b)->identity.pid;

	return (left > right) - (left < right);
}

static int read_processes(struct preview *preview, struct err *err)
{
	DIR *proc = opendir("/proc");
	struct record_head head;
	uint64_t pid;

	if (!proc)
		return err_set_errno(err, errno, "/proc");
	for (struct dirent *entry; (entry = readdir(proc));) {
		if (preview->count >= LABELS_PREVIEW_PROCESSES_MAX)
			break;
		if (slice_parse_u64(slice_of(entry->d_name), &pid) && pid <= INT32_MAX &&
		    read_head(dirfd(proc), (uint32_t)pid, &head))
			add_process(preview, &head);
	}
	closedir(proc);
	if (preview->count)
		qsort(preview->processes, preview->count, sizeof(struct process *), by_pid);
	return 0;
}

static void settle_containers(const struct label_sources *sources, const struct preview *preview)
{
	struct cgroup cgroup;

	for (size_t i = 0; i < preview->count; i++) {
		cgroup_parse(slice_of(preview->processes[i]->cgroups), &cgroup);
		pod_names_want(sources->pods, &cgroup, clock_monotonic_ns());
		if (sources->containers)
			container_names_want(sources->containers, cgroup.container, cgroup.runtime,
					     clock_monotonic_ns());
	}
	if (sources->containers)
		container_names_settle(sources->containers, SETTLE_NS);
	pod_names_settle(sources->pods, SETTLE_NS);
	cloud_names_settle(sources->cloud, SETTLE_NS);
}

static struct process *find_process(void *context, const struct process_identity *identity)
{
	const struct preview *preview = context;

	for (size_t i = 0; i < preview->count; i++)
		if (!memcmp(&preview->processes[i]->identity, identity, sizeof(*identity)))
			return preview->processes[i];
	return NULL;
}

/* In turn: no more are taken at once than may wait. */
static void read_attributes(const struct label_sources *sources, struct preview *preview)
{
	struct process_attributes *attributes = process_attributes_new();
	int64_t until_ns = clock_monotonic_ns() + SETTLE_NS;

	if (sources->config) {
		size_t count;
		const struct slice *names = agent_config_variables(sources->config, &count);

		process_attributes_set_variables(attributes, names, count);
	}
	for (size_t i = 0; i < preview->count && clock_monotonic_ns() < until_ns; i++) {
		process_attributes_want(attributes, preview->processes[i], clock_monotonic_ns());
		if (i % PROCESS_ATTRIBUTES_WAITING_MAX && i + 1 < preview->count)
			continue;
		process_attributes_settle(attributes, until_ns - clock_monotonic_ns());
		process_attributes_take(attributes, find_process, preview, clock_monotonic_ns());
	}
	process_attributes_free(attributes);
}

static void add_labels(struct strbuf *out, const struct rule_labels *labels, bool is_meta)
{
	const char *between = "";

	for (size_t i = 0; i < labels->count; i++) {
		const struct rule_label *label = &labels->labels[i];

		if (slice_starts_with(label->name, SLICE_LITERAL("__")) != is_meta)
			continue;
		strbuf_add_text(out, between);
		printable_add(out, label->name);
		strbuf_add_text(out, "=\"");
		printable_add(out, label->value);
		strbuf_add_byte(out, '"');
		between = ", ";
	}
}

struct program {
	struct elf_info elf;
	struct elf_origin origin;
};

/* The file that a process runs, while it does. */
static struct label_file read_program(const struct process *process, struct program *ret)
{
	const char *name = process_executable(process);
	struct label_file file = { 0 };
	int proc = process_open_image(process);
	int fd = proc < 0 ? -1 : openat(proc, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	memset(ret, 0, sizeof(*ret));
	if (fd >= 0 && !elf_read_info(fd, name, &ret->elf, NULL)) {
		elf_origin_read(fd, name, &ret->elf, &ret->origin);
		file = (struct label_file){ &ret->elf, &ret->origin };
	}
	if (fd >= 0)
		close(fd);
	if (proc >= 0)
		close(proc);
	return file;
}

static void add_preview(struct strbuf *out, const struct label_sources *sources,
			const struct process *process)
{
	struct program program;
	struct label_file file = read_program(process, &program);
	struct rule_labels labels;
	struct strbuf steps = { 0 };
	bool is_kept = true;

	rule_labels_init(&labels);
	labels_known(sources, process, &file, (struct slice){ 0 }, &labels);
	elf_origin_free(&program.origin);
	rule_labels_sort(&labels);
	strbuf_addf(out, "%" PRIu32 " ", process->identity.pid);
	printable_add(out, slice_of(process->name));
	strbuf_add_text(out, "\n  known  {");
	add_labels(out, &labels, false);
	strbuf_add_text(out, "}\n  meta   {");
	add_labels(out, &labels, true);
	strbuf_add_text(out, "}\n");
	if (sources->config)
		is_kept = agent_config_explain(sources->config, &labels, "  rule   ", &steps);
	strbuf_add_slice(out, strbuf_slice(&steps));
	if (is_kept) {
		strbuf_add_text(out, "  series {");
		add_labels(out, &labels, false);
		strbuf_add_text(out, "}\n");
	} else {
		strbuf_add_text(out, "  not profiled\n");
	}
	strbuf_free(&steps);
	rule_labels_free(&labels);
}

int labels_preview(const struct label_sources *sources, struct strbuf *out, struct err *err)
{
	struct preview preview = { 0 };
	int code = read_processes(&preview, err);

	settle_containers(sources, &preview);
	read_attributes(sources, &preview);
	for (size_t i = 0; i < preview.count; i++) {
		add_preview(out, sources, preview.processes[i]);
		process_free(preview.processes[i]);
	}
	free(preview.processes);
	return code;
}
