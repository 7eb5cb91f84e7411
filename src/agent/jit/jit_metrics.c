/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/jit_metrics.h"

METRIC_GAUGE(jit_processes, "firn_agent_jit_processes", "",
	     "Process images with samples in memory that belongs to no file.");
METRIC_GAUGE(jit_map_bytes, "firn_agent_jit_map_bytes", "",
	     "Memory for the names of generated code.");
METRIC_COUNTER(jit_reads, "firn_agent_jit_reads_total", "",
	       "Times that a process's perf map or jitdump was looked for and read.");
struct metric jit_read_seconds = { METRIC_TYPE_COUNTER,
				   "firn_agent_jit_read_seconds_total",
				   "",
				   "Time spent reading perf maps and jitdumps.",
				   1e-9,
				   0 };
METRIC_COUNTER(jit_read_bytes, "firn_agent_jit_read_bytes_total", "",
	       "Bytes read from perf maps and jitdumps.");
METRIC_COUNTER(jit_entries, "firn_agent_jit_entries_total", "",
	       "Named pieces of generated code read.");
METRIC_COUNTER(jit_entries_bad, "firn_agent_jit_entries_bad_total", "",
	       "Lines of perf maps and records of jitdumps that could not be used.");
METRIC_COUNTER(jit_entries_dropped, "firn_agent_jit_entries_dropped_total", "",
	       "Named pieces of generated code left out for room.");
METRIC_COUNTER(jit_unwinding, "firn_agent_jit_unwinding_functions_total", "",
	       "Generated functions with unwinding information from a jitdump.");
METRIC_COUNTER(jit_unwinding_dropped, "firn_agent_jit_unwinding_dropped_total", "",
	       "Generated functions whose unwinding information was left out for room.");
METRIC_GAUGE(jit_unwinding_lines, "firn_agent_jit_unwinding_lines", "",
	     "Pieces of 128 bytes of generated code with unwinding information from a jitdump.");
METRIC_COUNTER(jit_files_anew, "firn_agent_jit_files_anew_total", "",
	       "Perf maps and jitdumps read from their beginning because they were rewritten.");
METRIC_COUNTER(jit_found, "firn_agent_jit_frames_total", "{named=\"yes\"}",
	       "Frames in memory that belongs to no file, of distinct stacks.");
METRIC_COUNTER(jit_not_found, "firn_agent_jit_frames_total", "{named=\"no\"}",
	       "Frames in memory that belongs to no file, of distinct stacks.");
METRIC_COUNTER(jit_stuck, "firn_agent_jit_stuck_total", "",
	       "Processes whose perf map or jitdump is on a file system that does not answer.");

void jit_metrics_register(void)
{
	static struct metric *const metrics[] = {
		&jit_processes,	   &jit_map_bytes,	   &jit_reads,
		&jit_read_seconds, &jit_read_bytes,	   &jit_entries,
		&jit_entries_bad,  &jit_entries_dropped,   &jit_files_anew,
		&jit_found,	   &jit_not_found,	   &jit_stuck,
		&jit_unwinding,	   &jit_unwinding_dropped, &jit_unwinding_lines,
	};

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}
