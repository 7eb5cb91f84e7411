/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind_sources - all unwind information of a binary behind one interface: lists of functions by
 * file offset, and the rows of each.
 *
 * Part of table_build. A malformed source is left out and counted; the others are still used. One
 * thread at a time.
 */
#ifndef FIRN_AGENT_UNWIND_UNWIND_SOURCES_H
#define FIRN_AGENT_UNWIND_UNWIND_SOURCES_H

#include "agent/unwind/elf_sections.h"
#include "agent/unwind/table_build.h"
#include "codec/elf/unwind_sink.h"

/* Code of an executable segment, as offsets in the file. */
struct source_function {
	uint32_t start, length;
	uint32_t cookie; /* of the source */
};

struct source_list {
	struct source_function *functions; /* sorted by start; distinct; not overlapping */
	size_t count, capacity;
};

struct unwind_sources;

/* Opens what there is and lists and sorts its functions. Limits are all set. The stats count. */
int unwind_sources_open(const struct table_input *input, const struct table_limits *limits,
			struct table_stats *stats, struct unwind_sources **ret, struct err *err);
void unwind_sources_free(struct unwind_sources *sources); /* accepts NULL */

const struct elf_layout *unwind_sources_layout(const struct unwind_sources *sources);
const struct source_list *unwind_sources_list(const struct unwind_sources *sources,
					      enum table_source source);

/* Rows of a listed function. Their addresses are file offsets. */
int unwind_sources_rows(struct unwind_sources *sources, enum table_source source,
			const struct source_function *function, const struct unwind_row_sink *sink,
			struct err *err);

/* How many functions had to be left out, or cut, so far. */
uint64_t unwind_sources_malformed(const struct unwind_sources *sources);

#endif
