/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/procs/proc_stat.h"
#include "agent/procs/procs_metrics.h"
#include "base/mem.h"

#define READ_INTERVAL_MIN_NS (200 * CLOCK_NS_PER_MS)
#define READ_INTERVAL_MAX_NS (30 * CLOCK_NS_PER_S)
#define CGROUPS_BYTES_MAX 16384u
#define DELETED " (deleted)"

struct process *process_new(const struct record_head *head, int64_t now_ns)
{
	struct process *process = mem_new(struct process);

	process->identity = (struct process_identity){
		.start_ns = head->process_start_ns,
		.pid = head->tgid,
		.exec_id = head->exec_id,
	};
	process->parent_pid = head->parent_tgid;
	process->image_of_parent = head->flags & SAMPLE_IMAGE_OF_PARENT;
	process->read_interval_ns = READ_INTERVAL_MIN_NS;
	process_touch(process, head, now_ns);
	return process;
}

void process_free(struct process *process)
{
	if (!process)
		return;
	space_unref(process->space);
	process_forget_past(process);
	free(process->executable);
	free(process->cgroups);
	meta_labels_free(&process->attributes);
	free(process);
}

void process_touch(struct process *process, const struct record_head *head, int64_t now_ns)
{
	bool renamed = memcmp(process->name, head->process_name, SAMPLE_NAME_BYTES);

	process->seen_at_ns = now_ns;
	if (head->at_ns < process->newest_ns)
		return; /* it waited on another CPU */
	process->newest_ns = head->at_ns;
	process->thread = head->tid;
	if (renamed && process->known && !process->executable) {
		/* /proc was asked by a name that the process no longer had. */
		process->known = false;
		process->look_again_at_ns = now_ns;
	}
	memcpy(process->name, head->process_name, SAMPLE_NAME_BYTES);
}

void process_forget_past(struct process *process)
{
	for (size_t i = 0; i < PROCESS_PAST_MAX; i++)
		space_unref(process->past[i].space);
	memset(process->past, 0, sizeof(process->past));
}

/* Takes the reference. When there are too many the oldest is forgotten. */
static void add_past(struct process *process, struct space *space, int64_t since_ns)
{
	struct process_space *past = process->past;
	size_t i = 0;

	while (i < PROCESS_PAST_MAX && past[i].space && past[i].since_ns > since_ns)
		i++;
	if (i == PROCESS_PAST_MAX) {
		space_unref(space);
		return;
	}
	space_unref(past[PROCESS_PAST_MAX - 1].space);
	memmove(past + i + 1, past + i, (PROCESS_PAST_MAX - 1 - i) * sizeof(*past));
	past[i] = (struct process_space){ space, since_ns };
}

void process_set_space(struct process *process, struct space *space, int64_t at_ns, bool whole)
{
	if (process->space && at_ns < process->space_since_ns) {
		add_past(process, space, at_ns);
		return;
	}
	if (process->space == space) {
		space_unref(space);
	} else {
		if (process->space)
			add_past(process, process->space, process->space_since_ns);
		process->space = space;
		process->space_since_ns = at_ns;
	}
	process->space_is_whole = whole;
}

struct space *process_space_at(const struct process *process, int64_t at_ns)
{
	struct space *after = process->space;

	if (!process->space_is_whole || at_ns >= process->space_since_ns)
		return after;
	for (size_t i = 0; i < PROCESS_PAST_MAX && process->past[i].space; i++) {
		after = process->past[i].space;
		if (at_ns >= process->past[i].since_ns)
			break;
	}
	return after;
}

bool process_has_ended(const struct process *process)
{
	return kill((pid_t)process->identity.pid, 0) && errno == ESRCH;
}

size_t process_bytes(const struct process *process)
{
	return sizeof(*process) + (process->cgroups ? strlen(process->cgroups) : 0) +
	       (process->executable ? strlen(process->executable) : 0) +
	       process->attributes.text.capacity +
	       process->attributes.capacity * sizeof(*process->attributes.items);
}

static int open_proc(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The file's first bytes, NUL-terminated. The count, or -1. */
static ssize_t read_file(int proc, const char *name, char *text, size_t bytes)
{
	int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	size_t total = 0;
	ssize_t len = fd < 0 ? -1 : 0;

	while (fd >= 0 && total < bytes - 1 &&
	       (len = read(fd, text + total, bytes - 1 - total)) > 0)
		total += (size_t)len;
	if (fd >= 0)
		close(fd);
	text[total] = '\0';
	return len < 0 ? -1 : (ssize_t)total;
}

/* True if /proc shows the image that was sampled. */
static bool is_same_image(int proc, const struct process *process, uint64_t start_ns,
			  bool *ret_ended)
{
	char text[1024];
	ssize_t len = read_file(proc, "stat", text, sizeof(text));
	struct proc_stat stat;

	if (len <= 0 || !proc_stat_parse(slice_from(text, (size_t)len), &stat) ||
	    !slice_is(stat.name, process->name) ||
	    (start_ns && stat.start_ticks != start_ns / PROC_STAT_NS_PER_TICK))
		return false;
	*ret_ended = stat.ended;
	return true;
}

static void read_executable(struct process *process, int proc)
{
	char path[PATH_MAX];
	ssize_t len = readlinkat(proc, "exe", path, sizeof(path) - 1);
	struct slice deleted = SLICE_LITERAL(DELETED);
	struct slice text;

	if (len <= 0)
		return; /* kernel threads have none */
	text = slice_from(path, (size_t)len);
	if (text.len > deleted.len &&
	    slice_equal(slice_tail(text, text.len - deleted.len), deleted))
		text.len -= deleted.len;
	free(process->executable);
	process->executable = mem_strndup(text.data, text.len);
}

static void read_cgroups(struct process *process, int proc)
{
	char text[CGROUPS_BYTES_MAX];
	ssize_t len = read_file(proc, "cgroup", text, sizeof(text));

	if (len <= 0)
		return;
	free(process->cgroups);
	process->cgroups = mem_strndup(text, (size_t)len);
}

/*
 * /proc/PID if it still shows this image; the start is checked unless `start_ns` is 0. When the
 * main thread has ended, others may live on, and only they show the image. -1 when it has gone.
 */
static int open_image(const struct process *process, uint32_t pid, uint64_t start_ns)
{
	int proc = open_proc(pid);
	bool ended;

	if (proc < 0)
		return -1;
	if (!is_same_image(proc, process, start_ns, &ended)) {
		close(proc);
		return -1;
	}
	if (ended) {
		close(proc);
		proc = process->thread == pid ? -1 : open_proc(process->thread);
	}
	return proc;
}

int process_open_image(const struct process *process)
{
	return open_image(process, process->identity.pid, process->identity.start_ns);
}

static int open_parents_image(const struct process *process)
{
	return process->image_of_parent ? open_image(process, process->parent_pid, 0) : -1;
}

static char *copy_text(const char *text)
{
	return text ? mem_strndup(text, strlen(text)) : NULL;
}

static void inherit(struct process *process, const struct process *relative)
{
	if (!process->executable)
		process->executable = copy_text(relative->executable);
	if (!process->cgroups)
		process->cgroups = copy_text(relative->cgroups);
	if (!process->space)
		process->space = space_ref(relative->space);
}

void process_describe(struct process *process, const char *cgroups, const struct process *relative)
{
	int proc = process_open_image(process);

	process->known = true;
	if (cgroups && !process->cgroups)
		process->cgroups = copy_text(cgroups);
	if (relative && !process->attributes.count)
		meta_labels_copy(&process->attributes, &relative->attributes);
	if (proc < 0 && relative) {
		inherit(process, relative);
		return;
	}
	if (proc < 0)
		proc = open_parents_image(process);
	if (proc < 0) {
		metric_add(&procs_processes_gone, 1);
		return;
	}
	read_executable(process, proc);
	if (!process->cgroups)
		read_cgroups(process, proc);
	close(proc);
}

bool process_may_read_maps(struct process *process, int64_t now_ns)
{
	if (now_ns < process->read_again_at_ns)
		return false;
	process->read_again_at_ns = now_ns + process->read_interval_ns;
	if (process->read_interval_ns < READ_INTERVAL_MAX_NS)
		process->read_interval_ns *= 2;
	return true;
}

static bool read_maps(int proc, struct maps_file *ret)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	bool found = fd >= 0 && maps_file_read(ret, fd, NULL) > 0;

	if (fd >= 0)
		close(fd);
	close(proc);
	return found;
}

bool process_read_maps(const struct process *process, struct maps_file *ret)
{
	int proc = process_open_image(process);

	if (proc >= 0 && read_maps(proc, ret))
		return true;
	proc = open_parents_image(process);
	return proc >= 0 && read_maps(proc, ret);
}

struct opener_place process_place(const struct process *process, uint64_t start, uint64_t end)
{
	struct opener_place place = { .start = start, .end = end };

	place.pids[place.pids_count++] = process->identity.pid;
	if (process->thread != process->identity.pid)
		place.pids[place.pids_count++] = process->thread;
	if (process->image_of_parent)
		place.pids[place.pids_count++] = process->parent_pid;
	return place;
}

static bool is_executable(const struct process *process, const struct binary *binary)
{
	return process->executable && binary && binary->path &&
	       !strcmp(process->executable, binary->path);
}

const struct binary *process_binary(const struct process *process)
{
	const struct space *space = process->space;
	const struct mapping *first = NULL; /* programs are loaded below their libraries */

	for (uint32_t i = 0; space && i < space->count; i++) {
		const struct mapping *mapping = &space->mappings[i];

		if (mapping->kind != MAPPING_FILE)
			continue;
		if (is_executable(process, mapping->binary))
			return mapping->binary;
		if (!first)
			first = mapping;
	}
	return first ? first->binary : NULL;
}

const char *process_executable(const struct process *process)
{
	const struct binary *binary;

	if (process->executable)
		return process->executable;
	binary = process_binary(process);
	return binary ? binary->path : NULL;
}
