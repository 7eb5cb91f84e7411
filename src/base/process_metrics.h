/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_metrics - what every Prometheus client library tells of its process, under the names that
 * dashboards know (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics),
 * and which build of firn this is. Any thread, any number of times.
 */
#ifndef FIRN_BASE_PROCESS_METRICS_H
#define FIRN_BASE_PROCESS_METRICS_H

#include <stdint.h>

void process_metrics_register(void);

/* Resident memory of this process in bytes; 0 where /proc cannot be read. */
uint64_t process_metrics_resident_bytes(void);

#endif
