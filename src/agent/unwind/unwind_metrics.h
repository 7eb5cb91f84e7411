/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_metrics - what the loader of unwind tables counts. */
#ifndef FIRN_AGENT_UNWIND_UNWIND_METRICS_H
#define FIRN_AGENT_UNWIND_UNWIND_METRICS_H

#include "base/metrics.h"

extern struct metric unwind_tables, unwind_rows, unwind_bytes, unwind_chunk_bytes, unwind_waiting;
extern struct metric unwind_cache_bytes, unwind_cache_hits, unwind_cache_damaged;
extern struct metric unwind_cache_failed, unwind_builds, unwind_build_seconds, unwind_failures,
	unwind_segments_damaged;
extern struct metric unwind_empty, unwind_evictions, unwind_reloads, unwind_pauses;
extern struct metric unwind_refused_queue, unwind_refused_files, unwind_refused_binaries;
extern struct metric unwind_refused_room, unwind_refused_not_open;

void unwind_metrics_register(void); /* once per process */

#endif
