/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/tracepoints.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/slice.h"

/* The folder "events", kept open; -1 = it is looked for each time. */
static int kept_events = -1;

/* tracefs itself, or -errno. */
static int mount_tracefs(void)
{
	int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int root;

	if (context < 0)
		return -errno;
	if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		root = -errno;
	else if ((root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0)) < 0)
		root = -errno;
	close(context);
	return root;
}

/* The folder "events", or -errno. */
static int open_events(void)
{
	int events = open("/sys/kernel/tracing/events", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int root;

	if (events < 0 && kept_events >= 0)
		return fcntl(kept_events, F_DUPFD_CLOEXEC, 0);
	if (events < 0)
		events = open("/sys/kernel/debug/tracing/events", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (events >= 0)
		return events;
	root = mount_tracefs();
	if (root < 0)
		return root;
	events = openat(root, "events", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (events < 0)
		events = -errno;
	close(root);
	return events;
}

void tracepoints_prepare(void)
{
	if (kept_events < 0)
		kept_events = open_events();
}

/* The tracepoint's number, or -errno. */
static int64_t read_number(const char *category, const char *name)
{
	int events = open_events(), fd;
	char path[128], text[32];
	uint64_t number;
	ssize_t len;

	if (events < 0)
		return events;
	snprintf(path, sizeof(path), "%s/%s/id", category, name);
	fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (len < 0)
		len = -errno;
	if (fd >= 0)
		close(fd);
	close(events);
	if (len < 0)
		return len;
	while (len && text[len - 1] == '\n')
		len--;
	return slice_parse_u64(slice_from(text, (size_t)len), &number) ? (int64_t)number : -EINVAL;
}

int tracepoints_open(const char *category, const char *name, int *ret_fd, struct err *err)
{
	int64_t number = read_number(category, name);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint64_t)number,
	};
	int fd;

	if (number < 0)
		return err_set_errno(err, (int)-number, "find tracepoint \"%s/%s\"", category,
				     name);
	/* Programs run on every CPU, wherever their event is. */
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "open tracepoint \"%s/%s\"", category, name);
	*ret_fd = fd;
	return 0;
}
