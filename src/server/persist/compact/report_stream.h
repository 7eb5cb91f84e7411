/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_stream - the raw reports of several segments as one sequence by (series, start), in the
 * ids of their merged dictionary.
 *
 * Holds one block of each segment in memory. The output is always in order: a segment whose reports
 * do not ascend is ERR_CORRUPT. One thread.
 */
#ifndef FIRN_SERVER_PERSIST_COMPACT_REPORT_STREAM_H
#define FIRN_SERVER_PERSIST_COMPACT_REPORT_STREAM_H

#include "model/segment.h"
#include "server/persist/part/part_writer.h"
#include "server/persist/disk/throttle.h"

struct report_source {
	const struct segment *segment; /* with stacks */
	/* To ids of the merged dictionary; TABLES_FULL: what no report has. */
	const uint32_t *series;
	const uint32_t *nodes;	    /* by slot */
	const uint32_t *label_sets; /* NULL: rows have none */
};

struct report_stream;

struct report_stream *report_stream_new(const struct report_source *sources, size_t sources_count,
					uint32_t columns, struct throttle *throttle);
void report_stream_free(struct report_stream *stream); /* accepts NULL */

/* From the first report on (again). SEGMENT_MOMENTS: with times of samples. */
MUST_USE int report_stream_begin(struct report_stream *stream, enum segment_want want,
				 struct err *err);

/* 1 and a report that is valid until the next call, 0 at the end, or an error. */
MUST_USE int report_stream_next(struct report_stream *stream, struct part_report *ret,
				struct err *err);

/* The source that the last error came from. */
size_t report_stream_failed(const struct report_stream *stream);

#endif
