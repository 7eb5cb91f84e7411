/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

void process_free(struct process *process, int64_t now_ns)
{
	if (!process)
		return;
	mappings_free(&process->mappings, now_ns);
	free(process->executable);
	free(process->cgroups);
	free(process);
}

void process_touch(struct process *process, const struct record_head *head, int64_t now_ns)
{
	process->seen_at_ns = now_ns;
	memcpy(process->name, head->process_name, SAMPLE_NAME_BYTES);
}

bool process_has_ended(const struct process *process)
{
	return kill((pid_t)process->identity.pid, 0) && errno == ESRCH;
}

size_t process_bytes(const struct process *process)
{
	return sizeof(*process) + mappings_bytes(&process->mappings) +
	       (process->cgroups ? strlen(process->cgroups) : 0) +
	       (process->executable ? strlen(process->executable) : 0);
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

/* Whether /proc shows the image that was sampled. */
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

static int read_maps_file(struct process *process, int proc, const char *name, int64_t now_ns)
{
	int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	int lines;

	if (fd < 0)
		return -ERR_IO;
	lines = mappings_read(&process->mappings, fd, now_ns, NULL);
	close(fd);
	return lines;
}

/* False when the image has left memory. */
static bool read_image(struct process *process, int proc, bool ended, uint32_t thread,
		       int64_t now_ns)
{
	int lines = read_maps_file(process, proc, "maps", now_ns);

	if (lines == 0 && ended && thread) {
		char name[32];

		/* Other threads may live on; where none do, this file is gone or empty as well. */
		snprintf(name, sizeof(name), "task/%" PRIu32 "/maps", thread);
		lines = read_maps_file(process, proc, name, now_ns);
	}
	if (lines <= 0 && ended)
		return false;
	read_executable(process, proc);
	read_cgroups(process, proc);
	process->known = true;
	return true;
}

/* Reads /proc/PID if that is still this image; its start is checked unless `start_ns` is 0. */
static bool read_proc(struct process *process, uint32_t pid, uint64_t start_ns, uint32_t thread,
		      int64_t now_ns)
{
	int proc = open_proc(pid);
	bool ended, found = proc >= 0 && is_same_image(proc, process, start_ns, &ended) &&
			    read_image(process, proc, ended, thread, now_ns);

	if (proc >= 0)
		close(proc);
	return found;
}

static char *copy_text(const char *text)
{
	return text ? mem_strndup(text, strlen(text)) : NULL;
}

static void inherit(struct process *process, const struct process *relative)
{
	process->executable = copy_text(relative->executable);
	process->cgroups = copy_text(relative->cgroups);
	mappings_copy(&process->mappings, &relative->mappings);
	process->known = true;
}

/* Whether a reading is due; plans the next one. */
static bool may_read(struct process *process, int64_t now_ns)
{
	if (now_ns < process->read_again_at_ns)
		return false;
	process->read_again_at_ns = now_ns + process->read_interval_ns;
	if (process->read_interval_ns < READ_INTERVAL_MAX_NS)
		process->read_interval_ns *= 2;
	return true;
}

void process_get_known(struct process *process, uint32_t thread, const struct process *relative,
		       int64_t now_ns)
{
	if (!may_read(process, now_ns) ||
	    read_proc(process, process->identity.pid, process->identity.start_ns, thread, now_ns))
		return;
	if (relative)
		inherit(process, relative);
	else if (!process->image_of_parent ||
		 !read_proc(process, process->parent_pid, 0, 0, now_ns))
		metric_add(&procs_processes_gone, 1);
}

/* By address range, which also finds deleted files and those of other mount namespaces. */
static int open_by_range(uint32_t pid, const struct mapping *mapping)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, pid,
		 mapping->start, mapping->end);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static int open_by_path(uint32_t pid, const struct mapping *mapping)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	struct stat stat;
	char path[32];
	int root, fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC); /* ended: perhaps it was ours */
	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, mapping->path, &how, sizeof(how));
	close(root);
	if (fd >= 0 && (fstat(fd, &stat) || stat.st_ino != mapping->inode)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void open_binary(struct process *process, struct binaries *binaries, struct mapping *mapping,
			int64_t now_ns)
{
	int fd = open_by_range(process->identity.pid, mapping);

	if (fd < 0 && process->image_of_parent)
		fd = open_by_range(process->parent_pid, mapping);
	if (fd < 0)
		fd = open_by_path(process->identity.pid, mapping);
	mapping->opened = true;
	if (fd >= 0)
		mapping->binary = binaries_get(binaries, fd, mapping->path, now_ns);
}

static bool locate_all(struct process *process, struct binaries *binaries,
		       const uint64_t *addresses, size_t count, int64_t now_ns)
{
	bool all = true;

	for (size_t i = 0; i < count; i++) {
		struct mapping *mapping = mappings_find(&process->mappings, addresses[i]);

		if (!mapping)
			all = false;
		else if (mapping->kind == MAPPING_FILE && !mapping->opened)
			open_binary(process, binaries, mapping, now_ns);
	}
	return all;
}

void process_locate(struct process *process, struct binaries *binaries, uint32_t thread,
		    const uint64_t *addresses, size_t count, int64_t now_ns)
{
	if (!process->known || locate_all(process, binaries, addresses, count, now_ns) ||
	    !may_read(process, now_ns))
		return;
	if (read_proc(process, process->identity.pid, process->identity.start_ns, thread, now_ns))
		locate_all(process, binaries, addresses, count, now_ns);
}
