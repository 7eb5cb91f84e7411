/* SPDX-License-Identifier: Apache-2.0 */
/* jit_metrics - what reading the names of generated code counts. */
#ifndef FIRN_AGENT_JIT_JIT_METRICS_H
#define FIRN_AGENT_JIT_JIT_METRICS_H

#include "base/metrics.h"

extern struct metric jit_processes, jit_map_bytes, jit_reads, jit_read_seconds, jit_read_bytes;
extern struct metric jit_entries, jit_entries_bad, jit_entries_dropped, jit_files_anew;
extern struct metric jit_found, jit_not_found, jit_stuck;
extern struct metric jit_unwinding, jit_unwinding_dropped, jit_unwinding_lines;

void jit_metrics_register(void); /* once per process */

#endif
