/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/perf_events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#define CPUS_FILE "/sys/devices/system/cpu/online"

int perf_events_open_cpu(struct perf_events *events, unsigned cpu, unsigned frequency_hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = frequency_hz,
		.freq = 1,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	mem_grow(events->clocks, events->count, events->capacity);
	events->clocks[events->count++] = (struct perf_clock){ .fd = fd, .cpu = (int)cpu };
	return 0;
}

bool perf_events_parse_cpus(struct slice list, unsigned *ret, size_t max, size_t *ret_count)
{
	size_t count = 0;

	while (list.len && list.data[list.len - 1] == '\n')
		list.len--;
	while (list.len) {
		struct slice last, first = slice_cut(list, ',', &list);
		uint64_t from, to;

		first = slice_cut(first, '-', &last);
		if (!slice_parse_u64(first, &from))
			return false;
		to = from;
		if (last.len && !slice_parse_u64(last, &to))
			return false;
		if (to < from || to >= PERF_EVENTS_CPUS_MAX || to - from >= max - count)
			return false;
		for (; from <= to; from++)
			ret[count++] = (unsigned)from;
	}
	if (!count)
		return false;
	*ret_count = count;
	return true;
}

int perf_events_read_online(unsigned *ret, size_t *ret_count, struct err *err)
{
	char text[4096];
	int fd = open(CPUS_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
	int error_number = errno;

	if (fd >= 0)
		close(fd);
	if (len < 0)
		return err_set_errno(err, error_number, "read \"" CPUS_FILE "\"");
	if (!perf_events_parse_cpus(slice_from(text, (size_t)len), ret, PERF_EVENTS_CPUS_MAX,
				    ret_count))
		return err_set(err, ERR_INVALID, "read \"" CPUS_FILE "\": not a list of CPUs");
	return 0;
}

int perf_events_open_cpus(struct perf_events *events, unsigned frequency_hz, struct err *err)
{
	unsigned *cpus = mem_new_array(unsigned, PERF_EVENTS_CPUS_MAX);
	size_t count = 0;
	int code = perf_events_read_online(cpus, &count, err);

	for (size_t i = 0; !code && i < count; i++) {
		int failed = perf_events_open_cpu(events, cpus[i], frequency_hz);

		if (failed && failed != -ENODEV) /* went offline since */
			code = err_set_errno(err, -failed,
					     "open the cpu-clock perf event of CPU %u", cpus[i]);
	}
	free(cpus);
	if (!code && !events->count)
		code = err_set(err, ERR_UNSUPPORTED, "open perf events: no CPU accepts one");
	return code;
}

void perf_events_close(struct perf_events *events)
{
	for (size_t i = 0; i < events->count; i++)
		if (events->clocks[i].fd >= 0)
			close(events->clocks[i].fd);
	free(events->clocks);
	*events = (struct perf_events){ 0 };
}
