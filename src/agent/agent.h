/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - samples processes with eBPF and hands out finished reports.
 *
 *   kernel: perf event -> bpf/sample.bpf.c (kernel stack, user stack) -> ring buffer
 *   user:   collect (drain, count) -> describe (labels, mappings, names) -> deliver (a batch)
 *
 * A batch holds one report per distinct label set and window: type
 * on_cpu:samples:count:cpu:nanoseconds:delta, kernel frames with names (mapping "[kernel]" or
 * "[module]"), native frames as (build id, ELF virtual address), and a marker frame
 * "[truncated: reason]" at the root side of each stack that was cut. Never a series per pid.
 *
 * agent_start returns when sampling runs. README.md lists the threads: "drain" counts samples and
 * makes a window's tables (nothing is allocated per sample in steady state); "report" calls
 * binary_seen and deliver. While deliver is slow the next window grows; no sample is dropped.
 */
#ifndef FIRN_AGENT_AGENT_H
#define FIRN_AGENT_AGENT_H

#include <sys/types.h>

#include "agent/describe/sample_labels.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "base/err.h"
#include "model/tables.h"

struct agent;
struct agent_config;
struct pod_names_options;
struct cloud_names_options;

/* A program or library that a sample fell into. */
struct agent_binary {
	struct slice build_id, path;
	int fd;	   /* open for reading; the agent's */
	pid_t pid; /* of a process that had it mapped, and may have ended; 0 = not known */
};

#define AGENT_FREQUENCY_DEFAULT_HZ 19
#define AGENT_FREQUENCY_MAX_HZ 1000
#define AGENT_WINDOW_DEFAULT_NS (10 * CLOCK_NS_PER_S)

enum agent_target {
	AGENT_TARGET_HOST, /* every process on every CPU */
	AGENT_TARGET_PIDS, /* these processes, their threads, and children born from now on */
};

struct agent_options {
	unsigned frequency_hz;		      /* 0 = that of the configuration, else the default */
	int64_t window_ns;		      /* 0 = default; the first window lasts 2 s at most */
	const char *node;		      /* label `node`; NULL = the host's name */
	const char *const *container_sockets; /* identify/container_source.h; NULL = the usual */
	size_t container_sockets_count;
	const struct pod_names_options *pods;	 /* identify/pod_names.h; NULL = none */
	const struct cloud_names_options *cloud; /* identify/cloud_names.h; NULL = none */
	struct agent_config
		*config;	/* identify/agent_config.h; agent_start takes it; NULL = none */
	bool thread_labels;	/* label `thread_name` on the series */
	unsigned sample_labels; /* enum sample_label */
	bool sample_times;	/* batches say when each sample was taken */
	enum agent_target target;
	const pid_t *pids;
	size_t pids_count;
	const char *command; /* "firn record": said when privilege is missing; may be NULL */
	const char *program; /* that these are about to run; may be NULL */
	const char *unwind_cache_path; /* folder of unwind tables (table_cache.h); NULL = none */
	uint64_t unwind_memory_bytes;  /* for unwind tables; 0 = by the host's memory */

	/* Called on the report thread with each batch; the view is valid during the call. */
	void (*deliver)(void *context, const struct tables_view *batch);
	void *deliver_context;

	/*
	 * Called (report thread) when a binary is first seen, so that its symbols can be found.
	 * False: there is no room for it now; it is offered again with the next window. May be
	 * NULL.
	 */
	bool (*binary_seen)(void *context, const struct agent_binary *binary);
	void *binary_seen_context;
};

/*
 * Opens the files that need root, then gives up all privileges but those of an agent
 * (base/privilege.h) for good. Call it before any other thread starts; the next agent_start uses
 * the open files.
 */
int agent_confine(struct err *err);

/* Errors say what is missing and the remedy (privilege, BTF, kernel.perf_event_paranoid, ...). */
int agent_start(const struct agent_options *options, struct agent **ret, struct err *err);

/* Applies from the next window on. Takes ownership of the configuration. Any thread. */
void agent_set_config(struct agent *agent, struct agent_config *config);

/*
 * Stops sampling, delivers the rest, logs the counts of samples of this process, frees. Accepts
 * NULL.
 */
void agent_stop(struct agent *agent);

/*
 * The same, but the last samples wait up to `wait_ns` for unwind tables that are being built, where
 * agent_stop waits a second: those of a program of 500 MB take longer than the program may run.
 * They do not wait any more when `is_stopping` says so.
 */
void agent_finish(struct agent *agent, int64_t wait_ns, bool (*is_stopping)(void));

/* Waits until at least one report window has been delivered or timeout; for tests and record. */
bool agent_wait_window(struct agent *agent, int64_t timeout_ns);

/* Samples lost before they were in a report, since the start of the process. Any thread. */
uint64_t agent_lost_samples(void);

/* Lists what this host lacks for sampling, with remedies, a line each; empty = nothing. */
void agent_missing_privileges(struct strbuf *out);

#endif
