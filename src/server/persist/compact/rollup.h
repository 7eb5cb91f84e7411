/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup - sums of raw reports per ten minutes, hour and day (UTC), per series and of a whole
 * partition.
 *
 * A roll-up sums, per stack, the values of all reports that start within its window; it says how
 * many they were (the mean of gauges is sum / count), the first start, the last end and their
 * durations together. Rows have no sample labels. Sums wrap, as those of queries do.
 *
 * A level is written if it has at most half the rows of the level that queries would read without
 * it; ten minutes, which serve only the edges of ranges, at most a fourth. Levels of the whole
 * partition exist for delta types only, and for more than one series.
 *
 * Memory: one counter per stack and column for levels of series; for hours and days of the whole
 * partition also one per window; for its ten minutes, the rows of the ten minutes of series. At
 * most ROLLUP_BYTES_MAX; if that is not enough, the reports are read several times.
 */
#ifndef FIRN_SERVER_PERSIST_COMPACT_ROLLUP_H
#define FIRN_SERVER_PERSIST_COMPACT_ROLLUP_H

#include "server/persist/part/part_writer.h"
#include "server/persist/compact/report_stream.h"

#define ROLLUP_HOUR_NS ((int64_t)3600 * 1000000000)
#define ROLLUP_DAY_NS (24 * ROLLUP_HOUR_NS)
#define ROLLUP_TEN_NS (ROLLUP_HOUR_NS / 6)
#define ROLLUP_GRAINS 3
#define ROLLUP_BYTES_MAX ((size_t)256 << 20)

/* Counts, while the raw reports go by, what the levels of series would hold: ten minutes, hours,
 * days. */
struct rollup_count {
	uint64_t *last_window[ROLLUP_GRAINS]; /* by node: number of the (series, window) that
						 counted it last */
	uint64_t windows[ROLLUP_GRAINS];      /* how many there were */
	uint64_t rows[ROLLUP_GRAINS];
	int64_t window_ns[ROLLUP_GRAINS]; /* that the last report lies in */
	uint64_t raw_rows, raw_reports;
	uint32_t series;
	bool begun;
	int64_t first_ns, last_ns; /* starts of reports */
};

void rollup_count_begin(struct rollup_count *count, uint32_t nodes_count);
void rollup_count_report(struct rollup_count *count, const struct part_report *report);
void rollup_count_free(struct rollup_count *count);

struct rollup_job {
	struct report_stream *stream;
	struct part_writer *writer;
	const struct tables_view *view; /* the partition's dictionaries */
	const struct rollup_count *count;
	bool days; /* levels of days too */
};

/* Writes the levels that pay, after the raw reports of the open partition. */
MUST_USE int rollup_write(const struct rollup_job *job, struct err *err);

#endif
