/* SPDX-License-Identifier: Apache-2.0 */
/* procs_metrics - what the trackers of processes, mappings and binaries count. */
#ifndef FIRN_AGENT_PROCS_PROCS_METRICS_H
#define FIRN_AGENT_PROCS_PROCS_METRICS_H

#include "base/metrics.h"

extern struct metric procs_processes, procs_processes_gone, procs_processes_evicted;
extern struct metric procs_map_reads, procs_map_bytes, procs_map_lines_bad, procs_maps_cut;
extern struct metric procs_space_records_bad, procs_space_lists_lost, procs_reads_put_off;
extern struct metric procs_binaries, procs_binaries_refused, procs_binaries_unreadable;

void procs_metrics_register(void); /* once per process */

#endif
