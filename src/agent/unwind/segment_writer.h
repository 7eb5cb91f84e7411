/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_writer - takes rows by ascending file offset and writes the segments of a table file.
 *
 * Holds one segment in memory (bpf/table.h has the layout and its bounds); when it is full, it is
 * cut at the start of a block and written. Equal neighbours become one row. Thread-safe: no state
 * but the arguments.
 */
#ifndef FIRN_AGENT_UNWIND_SEGMENT_WRITER_H
#define FIRN_AGENT_UNWIND_SEGMENT_WRITER_H

#include "agent/unwind/table_file.h"

struct segment_writer;

/* Borrows the file descriptor and the name. */
struct segment_writer *segment_writer_new(int fd, const char *name);
void segment_writer_free(struct segment_writer *writer); /* accepts NULL */

/*
 * From `offset` on, `rule` holds. Offsets ascend; of equal ones the last counts. Before the first
 * row nothing is known. When the table is full (TABLE_SEGMENTS_MAX), further rows are dropped.
 * Errors: of writing.
 */
int segment_writer_row(struct segment_writer *writer, uint64_t offset,
		       const struct unwind_rule *rule, struct err *err);

/* Writes what is left and the header; the last row reaches up to `end_offset`. */
int segment_writer_finish(struct segment_writer *writer, uint64_t end_offset, uint16_t machine,
			  uint32_t sources, struct table_file_header *ret, struct err *err);

bool segment_writer_is_full(const struct segment_writer *writer);
/* Rows so far whose rule, or whose return address, is unsupported. */
uint64_t segment_writer_unsupported(const struct segment_writer *writer);

#endif
