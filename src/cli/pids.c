/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pids.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STATUS_BYTES 1024 /* of /proc/PID/status, whose first lines have the process id */
#define PROCESS_ID "\nTgid:\t"

/* The process of a thread, or of a process itself; `id` where that cannot be read. */
static pid_t process_of(pid_t id)
{
	char path[32], status[STATUS_BYTES + 1], *line;
	struct slice number, rest;
	uint64_t pid;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, status, STATUS_BYTES);
	if (fd >= 0)
		close(fd);
	status[len > 0 ? len : 0] = '\0';
	line = strstr(status, PROCESS_ID);
	if (!line)
		return id;
	number = slice_cut(slice_of(line + strlen(PROCESS_ID)), '\n', &rest);
	return slice_parse_u64(number, &pid) && pid && pid <= INT_MAX ? (pid_t)pid : id;
}

int pids_parse(const char *text, pid_t pids[static PIDS_MAX], size_t *count, struct err *err)
{
	struct slice rest = slice_of(text);

	*count = 0;
	while (rest.len) {
		struct slice one = slice_cut(rest, ',', &rest);
		uint64_t pid;

		if (!slice_parse_u64(one, &pid) || !pid || pid > INT_MAX)
			return err_set(err, ERR_INVALID, "--pid: \"%.*s\" is not a process id",
				       SLICE_FMT(one));
		if (*count == PIDS_MAX)
			return err_set(err, ERR_LIMIT, "--pid: more than %d", PIDS_MAX);
		if (kill((pid_t)pid, 0) && errno == ESRCH)
			return err_set(err, ERR_NOT_FOUND, "--pid: no process %d", (int)pid);
		pids[(*count)++] = process_of((pid_t)pid);
	}
	return *count ? 0 : err_set(err, ERR_INVALID, "--pid: no process id given");
}
