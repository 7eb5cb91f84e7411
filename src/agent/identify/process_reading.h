/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_reading - reads the meta labels that a process declares itself:
 *
 *   /proc/PID/cmdline   `__meta_process_cmdline`, its first META_LABELS_VALUE_MAX bytes
 *   /proc/PID/environ   `__meta_env_var_NAME`, of known names and of those that the configuration
 *                       asks for: nothing else of an environment is kept, it has secrets in it
 *   its memory          `__meta_otel_...`, its process context (otel_context.h)
 *
 * All of these are memory of the process, which can block the reader for as long as it likes: call
 * it on a thread that may be abandoned (files/job_thread.h).
 */
#ifndef FIRN_AGENT_IDENTIFY_PROCESS_READING_H
#define FIRN_AGENT_IDENTIFY_PROCESS_READING_H

#include "agent/identify/meta_labels.h"

#define ENV_META "__meta_env_var_"

struct process_reading {
	int proc; /* /proc/PID, open: it is of one process, whatever becomes of the number */
	struct strbuf variables; /* names, each with its NUL */
	uint64_t context_at;	 /* of the context's header when it was last found; 0 = not known */
	bool is_young;		 /* it cannot have published a context yet: none is looked for */
	struct meta_labels labels;
};

void process_reading_do(struct process_reading *reading); /* fills labels, notes context_at */
void process_reading_fini(struct process_reading *reading);

#endif
