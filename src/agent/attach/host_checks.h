/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_checks - a list of checks of what this host allows a profiler, each with its effect on
 * profiles and the remedy.
 *
 * Each check tries the thing itself (a capability, a file, a system call), never a version. Takes
 * some milliseconds; changes nothing. Any thread.
 */
#ifndef FIRN_AGENT_ATTACH_HOST_CHECKS_H
#define FIRN_AGENT_ATTACH_HOST_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_CHECKS_MAX 32
#define HOST_CHECKS_SHARE_IDS "`docker run --pid=host`, Kubernetes `hostPID: true`"
#define HOST_CHECKS_EXAMPLE "sudo firn up" /* as remedies have it */

enum host_check_state {
	HOST_CHECK_OK,
	HOST_CHECK_WARNING, /* profiles are poorer than they could be */
	HOST_CHECK_MISSING, /* whole stacks of the whole host cannot be had */
};

struct host_check {
	const char *name; /* "perf_events" */
	enum host_check_state state;
	bool needed;	     /* while it is missing there are no samples at all */
	char found[256];     /* what the host says */
	const char *meaning; /* for the profile, a sentence */
	char remedy[256];    /* a command where there is one; "" = nothing to be done */
};

struct host_checks {
	struct host_check items[HOST_CHECKS_MAX];
	size_t count;
};

void host_checks_run(struct host_checks *ret);

/* The memory of this host, or the limit of our cgroup (v2). */
uint64_t host_checks_memory_bytes(void);

/* False where process ids are not those of samples, which are the host's. */
bool host_checks_share_process_ids(void);

/* "ok", "warning", "missing" */
const char *host_check_state_name(enum host_check_state state);

#endif
