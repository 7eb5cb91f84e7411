/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/firn_processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/privilege.h"

#define STATUS_BYTES_MAX 8192u
#define RECORD_BYTES_MAX 8192u
#define RECORDS_MAX 1000000u
#define REFUSED_MARK " type=1326 " /* AUDIT_SECCOMP */

/* What firn's processes call themselves. */
static const char *const names[] = { "firn",	     "firn-agent", "firn-server",
				     "firn-starter", "firn-files", "firn-far-files",
				     "firn-symbols", "firn-code",  "firn-sources",
				     "firn-spawner" };

/* The text behind "FIELD:\t" up to the end of its line; false when there is no such line. */
static bool find_field(const char *status, const char *field, struct slice *ret)
{
	size_t len = strlen(field);
	struct slice rest = slice_of(status);

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);

		if (line.len > len + 1 && !memcmp(line.data, field, len) && line.data[len] == ':') {
			*ret = slice_tail(line, len + 2);
			return true;
		}
	}
	return false;
}

static uint64_t number_of(const char *status, const char *field, int base)
{
	struct slice text;
	char number[32];

	if (!find_field(status, field, &text))
		return 0;
	snprintf(number, sizeof(number), "%.*s", SLICE_FMT(text));
	return strtoull(number, NULL, base);
}

static const char *name_of(const char *status)
{
	struct slice name;

	if (find_field(status, "Name", &name))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (slice_is(name, names[i]))
				return names[i];
	return NULL;
}

static void look_at(struct firn_processes *processes, int pid)
{
	char path[32], status[STATUS_BYTES_MAX];
	const char *what;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return;
	status[len] = '\0';
	what = name_of(status);
	if (!what)
		return;
	processes->items[processes->count++] = (struct firn_process){
		.pid = pid,
		.what = what,
		.uid = (uint32_t)number_of(status, "Uid", 10),
		.capabilities = number_of(status, "CapEff", 16),
		.no_new_privileges = number_of(status, "NoNewPrivs", 10) == 1,
		.has_filter = number_of(status, "Seccomp", 10) == 2,
	};
}

/* The number behind "name=" in a line of the kernel's log. */
static uint64_t value_in(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void count_refused(struct firn_processes *processes, const char *line)
{
	uint64_t pid = value_in(line, " pid=");

	if (!strstr(line, REFUSED_MARK) || !strstr(line, " comm=\"firn"))
		return;
	for (size_t i = 0; i < processes->count; i++) {
		struct firn_process *process = &processes->items[i];

		if ((uint64_t)process->pid != pid)
			continue;
		process->refused_calls++;
		process->last_refused = (unsigned)value_in(line, " syscall=");
	}
}

/* Each read gives a record; EPIPE says that some were overwritten meanwhile. */
static void read_kernel_log(struct firn_processes *processes)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[RECORD_BYTES_MAX];

	for (unsigned i = 0; fd >= 0 && i < RECORDS_MAX; i++) {
		ssize_t len = read(fd, line, sizeof(line) - 1);

		if (len < 0 && errno == EPIPE)
			continue;
		if (len <= 0)
			break;
		line[len] = '\0';
		count_refused(processes, line);
	}
	if (fd >= 0)
		close(fd);
}

void firn_processes_find(struct firn_processes *ret)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	ret->count = 0;
	while (proc && ret->count < FIRN_PROCESSES_MAX && (entry = readdir(proc))) {
		uint64_t pid;

		if (slice_parse_u64(slice_of(entry->d_name), &pid) && pid != (uint64_t)getpid())
			look_at(ret, (int)pid);
	}
	if (proc)
		closedir(proc);
	if (ret->count)
		read_kernel_log(ret);
}

void firn_processes_text(const struct firn_processes *processes, struct strbuf *out)
{
	if (processes->count)
		strbuf_add_text(out, "\nProcesses of firn and what they may do:\n");
	for (size_t i = 0; i < processes->count; i++) {
		const struct firn_process *process = &processes->items[i];

		strbuf_addf(out, "%8d %-14s user %u, %s, %s; ", process->pid, process->what,
			    process->uid,
			    process->no_new_privileges ? "no new privileges" : "new privileges",
			    process->has_filter ? "system calls filtered" : "all system calls");
		if (process->capabilities & UINT64_C(1) << CAP_SETUID)
			strbuf_add_text(out, "root's capabilities");
		else if (process->capabilities)
			privilege_names(process->capabilities, out);
		else
			strbuf_add_text(out, "no capabilities");
		if (process->refused_calls)
			strbuf_addf(out,
				    "; the kernel refused it %" PRIu64
				    " system calls, last number %u",
				    process->refused_calls, process->last_refused);
		strbuf_add_byte(out, '\n');
	}
}

void firn_processes_json(const struct firn_processes *processes, struct json *json)
{
	json_open_array(json);
	for (size_t i = 0; i < processes->count; i++) {
		const struct firn_process *process = &processes->items[i];
		struct strbuf capabilities = { 0 };

		privilege_names(process->capabilities, &capabilities);
		json_open_object(json);
		json_put_key(json, "pid");
		json_put_uint(json, (uint64_t)process->pid);
		json_put_key(json, "name");
		json_put_text(json, process->what);
		json_put_key(json, "uid");
		json_put_uint(json, process->uid);
		json_put_key(json, "capabilities");
		json_put_text(json, strbuf_text(&capabilities));
		json_put_key(json, "no_new_privileges");
		json_put_bool(json, process->no_new_privileges);
		json_put_key(json, "system_calls_filtered");
		json_put_bool(json, process->has_filter);
		json_put_key(json, "system_calls_refused");
		json_put_uint(json, process->refused_calls);
		json_close_object(json);
		strbuf_free(&capabilities);
	}
	json_close_array(json);
}
