/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_names - caches the text of /proc/PID/cgroup by the cgroup's number: for processes that end
 * before theirs could be read, and to save reading.
 *
 * The number is that of the unified hierarchy, which the kernel never uses twice. Where that
 * hierarchy is not in use, all processes have its root and the number says nothing: such text is
 * not kept. Not thread-safe. Bounds: CGROUP_NAMES_MAX; then all are forgotten and learnt anew.
 */
#ifndef FIRN_AGENT_PROCS_CGROUP_NAMES_H
#define FIRN_AGENT_PROCS_CGROUP_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"

#define CGROUP_NAMES_MAX 4096

struct cgroup_name {
	uint64_t id;
	char *text;
};

struct cgroup_names {
	struct cgroup_name *items;
	size_t count, capacity;
	struct idmap map;
};

void cgroup_names_fini(struct cgroup_names *names); /* zero-initialised is empty */

/* Copies the text; an id that is 0 or known changes nothing. */
void cgroup_names_learn(struct cgroup_names *names, uint64_t id, const char *text);

const char *cgroup_names_find(const struct cgroup_names *names, uint64_t id); /* or NULL */

#endif
