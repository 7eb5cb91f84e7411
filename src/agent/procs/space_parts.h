/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space_parts - assembles records of kind RECORD_SPACE into whole lists of mappings.
 *
 * A process with many mappings needs several records. Each CPU sends the parts of one reading in
 * order, but other CPUs' records lie between them. A reading with a missing part is counted and
 * dropped. Records are checked: lengths, counts, order and overlaps. Bounds: one unfinished reading
 * per CPU, each of at most SPACE_PARTS_MAX parts. Not thread-safe.
 */
#ifndef FIRN_AGENT_PROCS_SPACE_PARTS_H
#define FIRN_AGENT_PROCS_SPACE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/bpf/shared.h"

#define SPACE_PARTS_CPUS_MAX 8192
#define SPACE_PARTS_MAPPINGS_MAX (SPACE_PARTS_MAX * SPACE_PART_MAPPINGS)

struct unfinished_space;

struct space_parts {
	struct unfinished_space **cpus; /* by CPU; NULL = none */
	size_t cpus_count;
	uint64_t lost; /* readings that were begun and never finished */
};

/* A whole reading: by address, without overlaps. Valid until the next record. */
struct space_list {
	const struct space_mapping *mappings;
	size_t count;
	uint16_t flags; /* enum space_record_flag, of all parts */
};

enum space_parts_result {
	SPACE_PARTS_BAD,  /* the record is unsound, or its parts do not fit together */
	SPACE_PARTS_MORE, /* further parts are to come */
	SPACE_PARTS_WHOLE
};

void space_parts_fini(struct space_parts *parts); /* zero-initialised is empty */

/* `record` has `len` bytes, at least a struct record_head. */
enum space_parts_result space_parts_take(struct space_parts *parts,
					 const struct space_record *record, size_t len,
					 struct space_list *ret);

#endif
