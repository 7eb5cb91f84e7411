/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_csv - a workload as text for other databases, in four files without headers:
 *
 *   rows.csv    report, start (ms), series, service, stack, value    in the order of making
 *   series.csv  series, service, name, value                        one line per label
 *   nodes.csv   stack, parent, frame
 *   frames.csv  frame, address, file, function
 *
 * Stacks, series and services are dense numbers, which is the best a normalised schema can have.
 */
#ifndef FIRN_BENCH_PEER_CSV_H
#define FIRN_BENCH_PEER_CSV_H

#include "bench/workload.h"

void peer_csv_write(const struct workload *workload, const char *dir);

#endif
