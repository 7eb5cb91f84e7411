/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/unwind_metrics.h"

METRIC_GAUGE(unwind_tables, "firn_agent_unwind_tables", "",
	     "Unwind tables that the BPF unwinder has.");
METRIC_GAUGE(unwind_rows, "firn_agent_unwind_rows", "", "Rows in these tables.");
METRIC_GAUGE(unwind_bytes, "firn_agent_unwind_bytes", "", "Memory that these tables take.");
METRIC_GAUGE(unwind_chunk_bytes, "firn_agent_unwind_chunk_bytes", "",
	     "Memory held for unwind tables, free or not.");
METRIC_GAUGE(unwind_waiting, "firn_agent_unwind_waiting", "",
	     "Binaries whose unwind table was requested and is not loaded yet.");
METRIC_GAUGE(unwind_cache_bytes, "firn_agent_unwind_cache_bytes", "",
	     "Unwind tables on disk, as of the last look.");
METRIC_COUNTER(unwind_cache_hits, "firn_agent_unwind_cache_hits_total", "",
	       "Unwind tables loaded from disk.");
METRIC_COUNTER(unwind_cache_damaged, "firn_agent_unwind_cache_damaged_total", "",
	       "Unwind tables on disk that were damaged, and removed.");
METRIC_COUNTER(unwind_cache_failed, "firn_agent_unwind_cache_failures_total", "",
	       "Unwind tables that could not be kept on disk.");
METRIC_COUNTER(unwind_builds, "firn_agent_unwind_builds_total", "", "Unwind tables built.");
struct metric unwind_build_seconds = { METRIC_TYPE_COUNTER,
				       "firn_agent_unwind_build_seconds_total",
				       "",
				       "CPU time spent on building unwind tables.",
				       1e-9,
				       0 };
METRIC_COUNTER(unwind_failures, "firn_agent_unwind_failures_total", "",
	       "Unwind tables that could not be built or loaded.");
METRIC_COUNTER(unwind_segments_damaged, "firn_agent_unwind_segments_damaged_total", "",
	       "Segments left out of unwind tables because they failed their checks.");
METRIC_COUNTER(unwind_empty, "firn_agent_unwind_empty_total", "",
	       "Mapped files that turned out to have no usable unwind information.");
METRIC_COUNTER(unwind_evictions, "firn_agent_unwind_evictions_total", "",
	       "Unwind tables taken out of memory to make room.");
METRIC_COUNTER(unwind_reloads, "firn_agent_unwind_reloads_total", "",
	       "Unwind tables loaded again after that.");
METRIC_COUNTER(unwind_pauses, "firn_agent_unwind_pauses_total", "",
	       "Times that the loader waited because it had used its share of CPU time.");

#define REFUSED "firn_agent_unwind_refused_total"
#define REFUSED_HELP "Requests for unwind tables that were deferred."
METRIC_COUNTER(unwind_refused_queue, REFUSED, "{reason=\"queue_full\"}", REFUSED_HELP);
METRIC_COUNTER(unwind_refused_files, REFUSED, "{reason=\"open_files\"}", REFUSED_HELP);
METRIC_COUNTER(unwind_refused_binaries, REFUSED, "{reason=\"binaries\"}", REFUSED_HELP);
METRIC_COUNTER(unwind_refused_not_open, REFUSED, "{reason=\"not_open\"}", REFUSED_HELP);
METRIC_COUNTER(unwind_refused_room, REFUSED, "{reason=\"no_room\"}", REFUSED_HELP);

void unwind_metrics_register(void)
{
	static struct metric *const metrics[] = {
		&unwind_tables,
		&unwind_rows,
		&unwind_bytes,
		&unwind_chunk_bytes,
		&unwind_waiting,
		&unwind_cache_bytes,
		&unwind_cache_hits,
		&unwind_cache_damaged,
		&unwind_cache_failed,
		&unwind_builds,
		&unwind_build_seconds,
		&unwind_failures,
		&unwind_segments_damaged,
		&unwind_empty,
		&unwind_evictions,
		&unwind_reloads,
		&unwind_pauses,
		&unwind_refused_queue,
		&unwind_refused_files,
		&unwind_refused_binaries,
		&unwind_refused_room,
		&unwind_refused_not_open,
	};

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}
