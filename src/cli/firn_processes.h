/* SPDX-License-Identifier: Apache-2.0 */
/* firn_processes - the processes of firn on this host, and what each of them may do. */
#ifndef FIRN_CLI_FIRN_PROCESSES_H
#define FIRN_CLI_FIRN_PROCESSES_H

#include <stdint.h>

#include "base/strbuf.h"
#include "codec/wire/json.h"

#define FIRN_PROCESSES_MAX 64

struct firn_process {
	int pid;
	const char *what; /* "firn-agent" */
	uint32_t uid;
	uint64_t capabilities; /* effective */
	bool no_new_privileges, has_filter;
	uint64_t refused_calls; /* that the kernel's log still has */
	unsigned last_refused;	/* its number on this architecture */
};

struct firn_processes {
	struct firn_process items[FIRN_PROCESSES_MAX];
	size_t count;
};

/* By their names, which any program may take: for people. Without the calling process. */
void firn_processes_find(struct firn_processes *ret);
void firn_processes_text(const struct firn_processes *processes, struct strbuf *out);

/* An array. */
void firn_processes_json(const struct firn_processes *processes, struct json *json);

#endif
