/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_raw - a batch as a WriteRaw request, as Parca's agents send it: for each report its series'
 * labels and one gzip-compressed pprof with the dictionary that this report needs.
 */
#ifndef FIRN_BENCH_WRITE_RAW_H
#define FIRN_BENCH_WRITE_RAW_H

#include "base/strbuf.h"
#include "model/tables.h"

void write_raw_encode(const struct tables_view *view, struct strbuf *out);

#endif
