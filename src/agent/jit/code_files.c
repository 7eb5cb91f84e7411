/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/code_files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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
#define MINOR_BITS 20			/* of a device within the kernel */
#define WRITTEN_SLACK_NS CLOCK_NS_PER_S /* file times are coarse */

struct looked_at {
	struct root_files *files;
	const struct code_files_wish *wish;
	uint32_t pid;
	int proc;
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

static bool belongs_to(const struct looked_at *looked, uint32_t owner)
{
	for (size_t i = 0; i < USERS; i++)
		if (owner == looked->users[i])
			return true;
	return owner == 0;
}

/* Has it opened; without a file when it is not the process's own. */
static struct root_file open_own(const struct looked_at *looked, const struct root_files_wish *wish,
				 struct code_files *ret)
{
	struct root_file file = root_files_open(looked->files, wish);

	ret->is_stuck |= file.is_stuck;
	ret->cpu_ns += file.cpu_ns;
	if (file.fd >= 0 && !belongs_to(looked, file.owner)) {
		close(file.fd);
		file.fd = -1;
	}
	return file;
}

/* Takes the descriptor over unless it is the one of a file that is not wanted. */
static struct code_file code_file_of(const struct root_file *file, bool is_wanted)
{
	if (file->fd >= 0 && !is_wanted)
		close(file->fd);
	return (struct code_file){ .fd = is_wanted ? file->fd : -1,
				   .device = file->key.device,
				   .inode = file->key.inode,
				   .is_copy = file->is_copy,
				   .copied_from = file->copied_from };
}

static void open_perf_map(const struct looked_at *looked, struct code_files *ret)
{
	char path[48];
	struct root_files_wish wish = { .pid = looked->pid,
					.path = path,
					.part = code_reader_wants(looked->wish->perf_map) };
	struct root_file file;

	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", looked->own_pid);
	file = open_own(looked, &wish, ret);
	ret->perf_map =
		code_file_of(&file, file.key.changed_ns >= looked->began_at_ns - WRITTEN_SLACK_NS);
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

static void open_jitdump(const struct looked_at *looked, const struct procmaps_line *line,
			 struct code_files *ret)
{
	struct strbuf path = { 0 };
	struct root_files_wish wish = { .pid = looked->pid,
					.device = (uint64_t)line->dev_major << MINOR_BITS |
						  line->dev_minor,
					.part = code_reader_wants(looked->wish->jitdump) };
	struct root_file file;

	procmaps_add_path(&path, line->path);
	wish.path = strbuf_text(&path);
	file = open_own(looked, &wish, ret);
	strbuf_free(&path);
	ret->jitdump = code_file_of(&file, file.key.inode == line->inode);
}

typedef void take_line_f(void *context, const struct procmaps_line *line);

static void read_maps(int proc, take_line_f *take, void *context)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	struct strbuf text = { 0 };
	size_t total = 0, at;
	ssize_t len = fd < 0 ? 0 : 1;

	while (len > 0 && total < MAPS_BYTES_MAX && text.len < MAPS_LINE_BYTES_MAX) {
		struct procmaps_line line;
		struct slice rest;

		len = read(fd, strbuf_reserve(&text, MAPS_CHUNK_BYTES), MAPS_CHUNK_BYTES);
		if (len <= 0)
			break;
		text.len += (size_t)len;
		total += (size_t)len;
		rest = strbuf_slice(&text);
		while ((at = slice_find_byte(rest, '\n')) != SIZE_MAX) {
			if (!procmaps_parse_line(slice_from(rest.data, at), &line, NULL))
				take(context, &line);
			rest = slice_tail(rest, at + 1);
		}
		memmove(text.data, rest.data, rest.len);
		text.len = rest.len;
	}
	strbuf_free(&text);
	if (fd >= 0)
		close(fd);
}

struct look_for_files {
	const struct looked_at *looked;
	struct code_files *ret;
};

static void take_file(void *context, const struct procmaps_line *line)
{
	const struct look_for_files *look = context;
	struct code_files *ret = look->ret;

	if (!line->inode)
		return;
	if (ret->runtime == FRAME_NATIVE)
		ret->runtime = code_name_runtime(line->path);
	if (ret->jitdump.fd < 0 && !line->deleted && !ret->is_stuck && is_jitdump_name(line->path))
		open_jitdump(look->looked, line, ret);
}

static void close_files(const struct code_files *files)
{
	if (files->perf_map.fd >= 0)
		close(files->perf_map.fd);
	if (files->jitdump.fd >= 0)
		close(files->jitdump.fd);
}

/* Files are opened by number: they are its own if it has that number before and after. */
static bool look(struct looked_at *looked, const struct process_identity *identity,
		 struct code_files *ret)
{
	if (!is_process(looked->proc, identity) || !read_status(looked))
		return false;
	open_perf_map(looked, ret);
	if (looked->wish->look_at_mappings)
		read_maps(looked->proc, take_file, &(struct look_for_files){ looked, ret });
	if (is_process(looked->proc, identity))
		return true;
	close_files(ret);
	return false;
}

static int open_proc(const struct process_identity *identity)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32, identity->pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

struct look_for_memory {
	const uint64_t *addresses;
	size_t count, found;
	struct code_memory_range *ret;
};

static void take_memory(void *context, const struct procmaps_line *line)
{
	struct look_for_memory *look = context;
	size_t i = 0;

	while (line->executable && i < look->count &&
	       look->addresses[i] - line->start >= line->end - line->start)
		i++;
	if (line->executable && i < look->count && look->found < look->count)
		look->ret[look->found++] = (struct code_memory_range){ line->start, line->end };
}

size_t code_files_find_memory(const struct process_identity *identity, const uint64_t *addresses,
			      size_t count, struct code_memory_range *ret)
{
	struct look_for_memory look = { addresses, count, 0, ret };
	int proc = open_proc(identity);

	if (proc < 0)
		return 0;
	if (is_process(proc, identity))
		read_maps(proc, take_memory, &look);
	close(proc);
	return look.found;
}

bool code_files_is_there(const struct process_identity *identity)
{
	int proc = open_proc(identity);
	bool is_there = proc >= 0 && is_process(proc, identity);

	if (proc >= 0)
		close(proc);
	return is_there;
}

bool code_files_open(struct root_files *files, const struct process_identity *identity,
		     const struct code_files_wish *wish, struct code_files *ret)
{
	struct looked_at looked = { .files = files,
				    .pid = identity->pid,
				    .wish = wish,
				    .began_at_ns = wall_clock_of(identity->start_ns) };
	struct code_files found = { .perf_map.fd = -1, .jitdump.fd = -1, .runtime = FRAME_NATIVE };
	int proc = open_proc(identity);
	bool is_found;

	if (proc < 0)
		return false;
	looked.proc = proc;
	is_found = look(&looked, identity, &found);
	close(proc);
	if (is_found)
		*ret = found;
	return is_found;
}
