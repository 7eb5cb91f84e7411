/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_metrics - what reading language runtimes counts. */
#ifndef FIRN_AGENT_RUNTIME_RUNTIME_METRICS_H
#define FIRN_AGENT_RUNTIME_RUNTIME_METRICS_H

#include "agent/runtime/runtime_file.h"
#include "base/metrics.h"

extern struct metric runtime_processes, runtime_bytes, runtime_read_seconds, runtime_stuck;
extern struct metric runtime_codes_read, runtime_codes_gone, runtime_codes_other;
extern struct metric runtime_codes_refused;

/* What became of a frame of a runtime's code. */
enum runtime_frame {
	RUNTIME_FRAME_NAMED,
	RUNTIME_FRAME_NOT_READ, /* its code had gone, or could not be read */
	RUNTIME_FRAME_CUT,	/* stands for all frames that are outside of what was read */
	RUNTIME_FRAME_UNKNOWN,	/* stands for all of a version whose layout is not known */
	RUNTIME_FRAMES
};

/* One more; any thread. */
void runtime_metrics_count(enum runtime_kind kind, enum runtime_frame frame);

void runtime_metrics_register(void); /* once per process */

#endif
