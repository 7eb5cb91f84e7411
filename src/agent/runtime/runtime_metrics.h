/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_metrics - what reading language runtimes counts. */
#ifndef FIRN_AGENT_RUNTIME_RUNTIME_METRICS_H
#define FIRN_AGENT_RUNTIME_RUNTIME_METRICS_H

#include "base/metrics.h"

extern struct metric runtime_processes, runtime_bytes, runtime_read_seconds, runtime_stuck;
extern struct metric runtime_codes_read, runtime_codes_gone, runtime_codes_other;
extern struct metric runtime_codes_refused;

void runtime_metrics_register(void); /* once per process */

#endif
