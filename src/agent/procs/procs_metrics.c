/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/procs_metrics.h"

METRIC_GAUGE(procs_processes, "firn_agent_processes", "", "Process images known.");
METRIC_COUNTER(procs_processes_gone, "firn_agent_processes_gone_total", "",
	       "Sampled processes that had ended before /proc could be read.");
METRIC_COUNTER(procs_processes_evicted, "firn_agent_processes_evicted_total", "",
	       "Live processes forgotten for room.");
METRIC_COUNTER(procs_map_reads, "firn_agent_map_reads_total", "", "Readings of /proc/PID/maps.");
METRIC_COUNTER(procs_map_bytes, "firn_agent_map_read_bytes_total", "",
	       "Bytes read from /proc/PID/maps.");
METRIC_COUNTER(procs_map_lines_bad, "firn_agent_map_lines_bad_total", "",
	       "Lines of /proc/PID/maps that could not be parsed.");
METRIC_COUNTER(procs_maps_cut, "firn_agent_maps_cut_total", "",
	       "Readings of /proc/PID/maps that were cut at a limit.");
METRIC_COUNTER(procs_space_records_bad, "firn_agent_mapping_records_bad_total", "",
	       "Records of mappings that were unsound or came out of order.");
METRIC_COUNTER(procs_space_lists_lost, "firn_agent_mapping_lists_lost_total", "",
	       "Lists of mappings that never became whole.");
METRIC_COUNTER(procs_reads_put_off, "firn_agent_proc_reads_put_off_total", "",
	       "Readings of /proc and of files that the agent's budget for them forbade.");
METRIC_GAUGE(procs_binaries, "firn_agent_binaries", "", "Binaries known.");
METRIC_COUNTER(procs_binaries_refused, "firn_agent_binaries_refused_total", "",
	       "Binaries left without a build id because too many are in use.");
METRIC_COUNTER(procs_binaries_unreadable, "firn_agent_binaries_unreadable_total", "",
	       "Mapped files without readable ELF headers.");

void procs_metrics_register(void)
{
	static struct metric *const metrics[] = {
		&procs_processes,	  &procs_processes_gone,
		&procs_processes_evicted, &procs_map_reads,
		&procs_map_bytes,	  &procs_map_lines_bad,
		&procs_maps_cut,	  &procs_binaries,
		&procs_binaries_refused,  &procs_binaries_unreadable,
		&procs_space_records_bad, &procs_space_lists_lost,
		&procs_reads_put_off,
	};

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}
