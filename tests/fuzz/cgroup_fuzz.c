/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cgroup and /proc/PID/stat: text in which programs and users choose names. */
#include <stdlib.h>

#include "agent/identify/cgroup.h"
#include "agent/procs/proc_stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct cgroup cgroup;
	struct proc_stat stat;

	cgroup_parse(text, &cgroup);
	if (cgroup.path.len > size || cgroup.systemd_unit.len > cgroup.path.len ||
	    cgroup.container.len > cgroup.path.len)
		abort();
	if (proc_stat_parse(text, &stat) && stat.name.len > size)
		abort();
	return 0;
}
