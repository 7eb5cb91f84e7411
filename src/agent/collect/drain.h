/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain - the thread that turns samples into windows.
 *
 *   sampler -> (tracker, counts) -> every window: batch_build -> `give` (the report thread)
 *
 * It alone owns the sampler, the tracker and the counts, so nothing of them is locked. It looks at
 * the ring buffer every 200 ms, or at once when that is half full, and reads /proc for new
 * processes then and there, before they end.
 */
#ifndef FIRN_AGENT_COLLECT_DRAIN_H
#define FIRN_AGENT_COLLECT_DRAIN_H

#include "agent/attach/host_handles.h"
#include "agent/attach/sampler.h"
#include "agent/identify/agent_config.h"
#include "agent/identify/cloud_names.h"
#include "agent/identify/pod_names.h"
#include "agent/procs/binaries.h"
#include "base/clock.h"
#include "model/tables.h"

struct drain;

/* One window on its way to the report thread. */
struct window {
	struct tables tables;
	struct binary_news *news; /* owned; those that come back were not taken */
	size_t news_count;
};

struct drain_options {
	struct sampler_options sampler; /* `take` is set by the drain */
	unsigned default_frequency_hz;	/* where the configuration has none; 0 = it has no say */
	int64_t window_ns;		/* the first one is shorter */
	char *node;			/* the drain frees it */
	const char *const *container_sockets; /* container_names.h; NULL = the usual ones */
	size_t container_sockets_count;
	const struct pod_names_options *pods;	 /* during drain_new; NULL = none */
	const struct cloud_names_options *cloud; /* likewise */
	struct agent_config *config;		 /* the drain frees it; NULL = none */
	bool thread_labels;
	unsigned sample_labels; /* enum sample_label */
	bool sample_times;	/* when each sample was taken is kept */
	bool announce_binaries;
	struct host_handles handles;   /* the drain closes them */
	const char *unwind_cache_path; /* unwind/loader.h */
	uint64_t unwind_memory_bytes;  /* 0 = a hundredth of the host's, 40 MiB at least */
	const char *program;	       /* that chosen processes are about to run; may be NULL */

	/*
	 * Waits until the report thread is done with the window before, then gives it this one to
	 * fill; `give` sends it off. Both on the drain thread.
	 */
	struct window *(*take_empty)(void *context);
	void (*give)(void *context, struct window *window);
	void *context;
};

/* Starts sampling; the thread is started by drain_run. Owns node, configuration and handles in any
 * case. */
int drain_new(const struct drain_options *options, struct drain **ret, struct err *err);

/* The thread's body: until drain_stop. The last window is given before it returns. */
void *drain_run(void *drain);

/* Holds from the next window on, and is freed by the drain. Any thread. */
void drain_set_config(struct drain *drain, struct agent_config *config);

/*
 * From any thread; returns at once. The last samples wait so long for what their stacks lack, or
 * for less if it is called again with less.
 */
void drain_stop(struct drain *drain, int64_t settle_ns);
void drain_free(struct drain *drain); /* after drain_run has returned, or never ran */

void drain_metrics_register(void); /* once per process */
/* By the BPF program, as far as windows have ended. Any thread. */
uint64_t drain_taken_samples(void);
uint64_t drain_lost_samples(void); /* before they were in a window; any thread */

#endif
