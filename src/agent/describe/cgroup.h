/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - what a process's control group says about it: /proc/PID/cgroup (cgroups(7)) to the
 * path, the systemd unit and the container.
 *
 * The unified hierarchy's path ("0::/...") is taken; where it is the root and version 1 is in use,
 * the systemd, memory or cpu hierarchy's. Container ids are recognised by shape: 64 hex digits
 * (Docker, containerd, CRI-O, Podman, with or without prefix and ".scope"), or the name after
 * "lxc.payload.". Slices of the result point into the text; empty = none.
 */
#ifndef FIRN_AGENT_DESCRIBE_CGROUP_H
#define FIRN_AGENT_DESCRIBE_CGROUP_H

#include "base/slice.h"

struct cgroup {
	struct slice path;	   /* "/system.slice/nginx.service"; empty for the root */
	struct slice systemd_unit; /* "nginx.service", "session-3.scope" */
	struct slice container;
};

void cgroup_parse(struct slice text, struct cgroup *ret);

#endif
