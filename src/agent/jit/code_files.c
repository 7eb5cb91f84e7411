/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/code_files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/jit/code_name.h"
#include "agent/procs/proc_stat.h"
#include "codec/process/procmaps.h"

#define USERS 4 /* real, effective, saved, of the file system */
#define STATUS_BYTES_MAX 8192u
#define MAPS_CHUNK_BYTES ((size_t)64 * 1024)
#define MAPS_BYTES_MAX ((size_t)8 << 20)
#define MAPS_LINE_BYTES_MAX ((size_t)32 * 1024)
#define WRITTEN_SLACK_NS CLOCK_NS_PER_S /* file times are coarse */

struct looked_at {
	int proc, root;
	uint32_t own_pid; /* as the process sees itself */
	uint64_t users[USERS];
	int64_t began_at_ns; /* wall clock */
};

static ssize_t read_text(int proc, const char *name, char *text, size_t bytes)
{
	int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, bytes); /* one read gives all of these */

	if (fd >= 0)
		close(fd);
	return len;
}

static bool is_process(int proc, const struct process_identity *identity)
{
	char text[1024];
	ssize_t len = read_text(proc, "stat", text, sizeof(text));
	struct proc_stat stat;

	return len > 0 && proc_stat_parse(slice_from(text, (size_t)len), &stat) && !stat.ended &&
	       stat.start_ticks == identity->start_ns / PROC_STAT_NS_PER_TICK;
}

/* Takes the next number of a line of /proc/PID/status. */
static bool take_number(struct slice *line, uint64_t *ret)
{
	size_t at = 0, end;

	while (at < line->len && (line->data[at] == ' ' || line->data[at] == '\t'))
		at++;
	for (end = at; end < line->len && line->data[end] >= '0' && line->data[end] <= '9';)
		end++;
	if (!slice_parse_u64(slice_from(line->data + at, end - at), ret))
		return false;
	*line = slice_tail(*line, end);
	return true;
}

/* Users, and the number in the innermost PID namespace, which comes last. */
static bool read_status(struct looked_at *looked)
{
	char text[STATUS_BYTES_MAX];
	ssize_t len = read_text(looked->proc, "status", text, sizeof(text));
	struct slice rest = slice_from(text, len > 0 ? (size_t)len : 0);
	size_t users = 0;
	bool has_pid = false;

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest), values;
		struct slice name = slice_cut(line, ':', &values);
		uint64_t value;

		while (slice_is(name, "Uid") && users < USERS && take_number(&values, &value))
			looked->users[users++] = value;
		while (slice_is(name, "NSpid") && take_number(&values, &value)) {
			looked->own_pid = (uint32_t)value;
			has_pid = true;
		}
	}
	return users == USERS && has_pid;
}

static int64_t wall_clock_of(uint64_t start_ns)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return clock_real_ns() - (now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec) + (int64_t)start_ns;
}

static bool belongs_to(const struct looked_at *looked, const struct stat *stat)
{
	for (size_t i = 0; i < USERS; i++)
		if (stat->st_uid == looked->users[i])
			return true;
	return stat->st_uid == 0;
}

/* Looks before opening: a device or a pipe could do something when it is opened. */
static int open_regular(const struct looked_at *looked, const char *path, struct stat *ret)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int found = (int)syscall(SYS_openat2, looked->root, path, &how, sizeof(how));
	char own[32];
	int fd = -1;

	if (found < 0)
		return -1;
	if (!fstat(found, ret) && S_ISREG(ret->st_mode) && belongs_to(looked, ret)) {
		snprintf(own, sizeof(own), "/proc/self/fd/%d", found);
		fd = open(own, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	close(found);
	return fd;
}

static int open_perf_map(const struct looked_at *looked)
{
	struct stat stat;
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", looked->own_pid);
	fd = open_regular(looked, path, &stat);
	if (fd >= 0 && stat.st_mtim.tv_sec * CLOCK_NS_PER_S + stat.st_mtim.tv_nsec <
			       looked->began_at_ns - WRITTEN_SLACK_NS) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_jitdump_name(struct slice path)
{
	const struct slice end = SLICE_LITERAL(".dump");
	size_t base = path.len;

	while (base && path.data[base - 1] != '/')
		base--;
	path = slice_tail(path, base);
	return path.len > end.len && slice_starts_with(path, SLICE_LITERAL("jit-")) &&
	       slice_equal(slice_tail(path, path.len - end.len), end);
}

static int open_jitdump(const struct looked_at *looked, const struct procmaps_line *line)
{
	struct strbuf path = { 0 };
	struct stat stat;
	int fd;

	procmaps_add_path(&path, line->path);
	fd = open_regular(looked, strbuf_text(&path), &stat);
	strbuf_free(&path);
	if (fd >= 0 && stat.st_ino != line->inode) {
		close(fd);
		return -1;
	}
	return fd;
}

static void look_at_line(const struct looked_at *looked, struct slice text, struct code_files *ret)
{
	struct procmaps_line line;

	if (procmaps_parse_line(text, &line, NULL) || !line.inode)
		return;
	if (ret->runtime == FRAME_NATIVE)
		ret->runtime = code_name_runtime(line.path);
	if (ret->jitdump < 0 && !line.deleted && is_jitdump_name(line.path))
		ret->jitdump = open_jitdump(looked, &line);
}

static void look_at_maps(const struct looked_at *looked, struct code_files *ret)
{
	int fd = openat(looked->proc, "maps", O_RDONLY | O_CLOEXEC);
	struct strbuf text = { 0 };
	size_t total = 0, at;
	ssize_t len = fd < 0 ? 0 : 1;

	while (len > 0 && total < MAPS_BYTES_MAX && text.len < MAPS_LINE_BYTES_MAX) {
		struct slice rest;

		len = read(fd, strbuf_reserve(&text, MAPS_CHUNK_BYTES), MAPS_CHUNK_BYTES);
		if (len <= 0)
			break;
		text.len += (size_t)len;
		total += (size_t)len;
		rest = strbuf_slice(&text);
		while ((at = slice_find_byte(rest, '\n')) != SIZE_MAX) {
			look_at_line(looked, slice_from(rest.data, at), ret);
			rest = slice_tail(rest, at + 1);
		}
		memmove(text.data, rest.data, rest.len);
		text.len = rest.len;
	}
	strbuf_free(&text);
	if (fd >= 0)
		close(fd);
}

static bool look(struct looked_at *looked, const struct process_identity *identity,
		 struct code_files *ret)
{
	if (!is_process(looked->proc, identity) || !read_status(looked))
		return false;
	looked->root = openat(looked->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (looked->root < 0)
		return false;
	ret->perf_map = open_perf_map(looked);
	look_at_maps(looked, ret);
	close(looked->root);
	return true;
}

bool code_files_open(const struct process_identity *identity, struct code_files *ret)
{
	struct looked_at looked = { .began_at_ns = wall_clock_of(identity->start_ns) };
	struct code_files files = { -1, -1, FRAME_NATIVE };
	char path[32];
	bool found;
	int proc;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, identity->pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return false;
	looked.proc = proc;
	found = look(&looked, identity, &files);
	close(proc);
	if (found)
		*ret = files;
	return found;
}
