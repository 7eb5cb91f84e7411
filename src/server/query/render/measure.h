/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure - values with units and percentages as `go tool pprof` writes them, so that our tables
 * can be compared with its tables line by line (google/pprof internal/measurement: "1.50s",
 * "512kB", "7").
 */
#ifndef FIRN_SERVER_QUERY_RENDER_MEASURE_H
#define FIRN_SERVER_QUERY_RENDER_MEASURE_H

#include "base/strbuf.h"

/* The unit for values of one table, from the smallest (not zero) and largest magnitude in it. */
struct slice measure_unit_for(int64_t smallest, int64_t largest, struct slice unit);

/* The value in `shown_unit`, at most two decimals, unit behind it. */
void measure_value(struct strbuf *out, int64_t value, struct slice unit, struct slice shown_unit);

/* The value in the unit that suits it. */
void measure_value_auto(struct strbuf *out, int64_t value, struct slice unit);

/* Five columns and a percent sign. */
void measure_percentage(struct strbuf *out, int64_t value, int64_t total);

#endif
