/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - what a process's control group says about it: /proc/PID/cgroup (cgroups(7)) to the
 * path, the systemd unit and slice, the container and its runtime, the pod.
 *
 * The unified hierarchy's path ("0::/...") is taken; where it is the root and version 1 is in use,
 * the systemd, memory or cpu hierarchy's. Container ids are recognised by shape: 64 hex digits
 * (Docker, containerd, CRI-O, Podman, with or without prefix and ".scope"), or LXC's name after
 * "lxc.payload." or in "/lxc/" or "lxc.payload/". Paths may begin with "/.." (a control group
 * namespace of our own). Slices of the result point into the text; empty = none.
 */
#ifndef FIRN_AGENT_IDENTIFY_CGROUP_H
#define FIRN_AGENT_IDENTIFY_CGROUP_H

#include "base/slice.h"

enum cgroup_runtime {
	CGROUP_RUNTIME_UNKNOWN, /* a container of which the path does not say whose */
	CGROUP_RUNTIME_DOCKER,
	CGROUP_RUNTIME_PODMAN,
	CGROUP_RUNTIME_CONTAINERD,
	CGROUP_RUNTIME_CRIO,
	CGROUP_RUNTIME_LXC,
};

#define CGROUP_POD_UID_BYTES 64

struct cgroup {
	struct slice path;	    /* "/system.slice/nginx.service"; empty for the root */
	struct slice systemd_unit;  /* "nginx.service", "session-3.scope" */
	struct slice systemd_slice; /* "system.slice", "user-1000.slice" */
	struct slice container;
	enum cgroup_runtime runtime;
	char pod_uid[CGROUP_POD_UID_BYTES]; /* of Kubernetes, with '-'; "" = none */
	const char *pod_qos;		    /* "guaranteed", "burstable", "besteffort"; or NULL */
};

void cgroup_parse(struct slice text, struct cgroup *ret);

#endif
