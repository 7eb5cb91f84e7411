/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_directory_encode - the record of what was written to a part, and its directory. Only for
 * part_writer.c.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_DIRECTORY_ENCODE_H
#define FIRN_SERVER_PERSIST_PART_PART_DIRECTORY_ENCODE_H

#include "server/persist/part/part_format.h"

struct part_written_partition {
	uint32_t tenant, service, service_label, type; /* texts; number of the type */
	uint32_t series, row_label_sets, label_strings, strings, frames, nodes, stacks;
	int64_t start_min_ns, start_max_ns; /* of raw reports */
	uint64_t reports, rows;		    /* likewise */
	uint32_t *row_label_names;	    /* texts */
	uint32_t row_label_names_count, row_label_names_capacity;
	uint32_t blocks[SEGMENT_LEVELS];
	bool chunk_begins[PART_SECTIONS];
	uint64_t section_bytes[PART_SECTIONS];
};

struct part_written_stripe {
	uint32_t chunk; /* headers; rows are the next, then moments */
	uint32_t reports, columns;
	bool has_moments;
	uint64_t rows;
};

/* The chunks that hold sections of one kind. */
struct part_section_chunks {
	uint32_t *numbers;
	uint32_t count, capacity;
};

struct part_written {
	struct part_chunk *chunks;
	uint32_t chunks_count, chunks_capacity;
	struct part_written_stripe *stripes;
	uint32_t stripes_count, stripes_capacity;
	struct part_section_chunks section_chunks[PART_SECTIONS];
	struct tables texts;
	struct tables types; /* its strings are encoded types, but for the first */
	struct part_written_partition *partitions;
	uint32_t partitions_count, partitions_capacity;
};

void part_directory_encode(const struct part_written *written, struct strbuf *out);

#endif
