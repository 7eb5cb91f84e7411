/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units - parses durations, sizes and times as people write them.
 *
 *   durations  10s 5m 1h 7d 250ms 1h30m      (units ns us ms s m h d w, largest first, each once)
 *   sizes      512MB 10GiB 1000 20%          (B, kB MB GB TB = powers of 1000, KiB.. = of 1024)
 *   times      now  now-1h  1h (ago)  2026-01-02T15:04:05Z (RFC 3339)  1767366245000 (ms)
 */
#ifndef FIRN_CONFIG_UNITS_H
#define FIRN_CONFIG_UNITS_H

#include "base/err.h"
#include "base/slice.h"

/* Nanoseconds, positive or 0. */
int units_parse_duration(struct slice text, int64_t *ret_ns, struct err *err);

/*
 * Bytes; with a percent sign *ret_percent is set instead (0..100) and *ret_bytes to 0. If
 * `ret_percent` is NULL, a percentage fails.
 */
int units_parse_size(struct slice text, uint64_t *ret_bytes, double *ret_percent, struct err *err);

/*
 * Times beyond these (years 1823 and 2116) are clamped to them, so that "9999-12-31..." can mean
 * "for ever", and neither the difference of two times nor a window around one overflows.
 */
#define UNITS_TIME_MAX_NS (INT64_MAX / 2)
#define UNITS_TIME_MIN_NS (-UNITS_TIME_MAX_NS)

/* Nanoseconds since the epoch; `now_ns` is the value of "now". */
int units_parse_time(struct slice text, int64_t now_ns, int64_t *ret_ns, struct err *err);

#endif
