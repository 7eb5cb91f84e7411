/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/runtime_metrics.h"

#include <stdio.h>

#define LABELS_BYTES 64

#define CODES "firn_agent_runtime_code_objects_total"
#define CODES_HELP "Code objects of interpreters that a name was wanted of."

METRIC_GAUGE(runtime_processes, "firn_agent_runtime_processes", "",
	     "Process images whose interpreter's frames are read.");
METRIC_GAUGE(runtime_bytes, "firn_agent_runtime_bytes", "",
	     "Memory for names and lines of interpreted code.");
struct metric runtime_read_seconds = { METRIC_TYPE_COUNTER,
				       "firn_agent_runtime_read_seconds_total",
				       "",
				       "Time spent reading code objects out of processes.",
				       1e-9,
				       0 };
METRIC_COUNTER(runtime_codes_read, CODES, "{result=\"read\"}", CODES_HELP);
METRIC_COUNTER(runtime_codes_gone, CODES, "{result=\"gone\"}", CODES_HELP);
METRIC_COUNTER(runtime_codes_other, CODES, "{result=\"other\"}", CODES_HELP);
METRIC_COUNTER(runtime_codes_refused, CODES, "{result=\"refused\"}", CODES_HELP);
METRIC_COUNTER(runtime_stuck, "firn_agent_runtime_stuck_total", "",
	       "Processes whose memory could not be read in reasonable time, and were given up.");

static struct metric frames[RUNTIME_KINDS][RUNTIME_FRAMES];

void runtime_metrics_count(enum runtime_kind kind, enum runtime_frame frame)
{
	metric_add(&frames[kind][frame], 1);
}

static void register_frames(enum runtime_kind kind)
{
	static const char *const results[RUNTIME_FRAMES] = { "named", "not_read", "cut",
							     "unknown" };
	static char labels[RUNTIME_KINDS][RUNTIME_FRAMES][LABELS_BYTES];
	struct metric *metrics[RUNTIME_FRAMES];

	for (int i = 0; i < RUNTIME_FRAMES; i++) {
		snprintf(labels[kind][i], LABELS_BYTES, "{runtime=\"%s\",result=\"%s\"}",
			 runtime_kind_name(kind), results[i]);
		metrics[i] = &frames[kind][i];
		*metrics[i] = (struct metric){
			.type = METRIC_TYPE_COUNTER,
			.name = "firn_agent_runtime_frames_total",
			.labels = labels[kind][i],
			.help = "Frames of language runtimes in stacks, each stack of a window "
				"once, by what became of them.",
			.scale = 1,
		};
	}
	metrics_register(metrics, RUNTIME_FRAMES);
}

void runtime_metrics_register(void)
{
	static struct metric *const metrics[] = {
		&runtime_processes,  &runtime_bytes,	     &runtime_read_seconds,
		&runtime_codes_read, &runtime_codes_gone,    &runtime_codes_other,
		&runtime_stuck,	     &runtime_codes_refused,
	};

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	for (int kind = 0; kind < RUNTIME_KINDS; kind++)
		register_frames((enum runtime_kind)kind);
}
