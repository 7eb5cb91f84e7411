/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch - a window's counts to tables: labels, frames, and one report per distinct label set.
 *
 * Stacks are root first: the marker of a cut stack, user frames, kernel frames. Native frames are
 * (binary, build id, ELF virtual address), or offsets in a file that could not be read, which is
 * "[unknown file]" where not even its path is known; kernel frames have names and no address;
 * memory that is no file is "[jit]" with a name where the process wrote it down (agent/jit),
 * "[wasm]" of WebAssembly that has an image in memory, else the one frame "[anon]". Every sample
 * that was counted is in exactly one row; its time, counted in ticks of TABLES_TICK_NS since the
 * window's start, is a moment of that row.
 */
#ifndef FIRN_AGENT_DESCRIBE_BATCH_H
#define FIRN_AGENT_DESCRIBE_BATCH_H

#include "agent/collect/counts.h"
#include "agent/describe/kernel_image.h"
#include "agent/describe/kernel_symbols.h"
#include "agent/describe/labels.h"
#include "agent/describe/sample_labels.h"
#include "agent/jit/jit.h"
#include "agent/procs/tracker.h"
#include "agent/runtime/runtimes.h"
#include "model/tables.h"

struct batch_window {
	const struct counts *counts;
	const struct tracker *tracker;
	struct kernel_symbols *kernel_symbols;
	const struct kernel_image *kernel_image;
	const struct runtimes *runtimes; /* NULL = no frames of interpreters */
	struct jit *jit;		 /* NULL = no names of generated code */
	struct label_sources labels;
	bool thread_labels;	/* thread names are on the series */
	unsigned sample_labels; /* enum sample_label */
	int64_t start_ns;	/* wall clock */
	int64_t duration_ns;
	int64_t period_ns; /* of the sampling clock */
	uint64_t batch_id;
};

void batch_metrics_register(void);     /* once per process */
uint64_t batch_left_out_samples(void); /* by rules, since the start of the process; any thread */

/* Adds the reports to empty tables. */
void batch_build(struct tables *tables, const struct batch_window *window);

#endif
