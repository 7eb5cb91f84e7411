/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_directory - decodes the directory of a part (what lies where) from untrusted bytes.
 *
 * Chunks are contiguous from the header to the directory. Sections are contiguous within chunks, in
 * the order of the partitions. A pure function.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_DIRECTORY_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_DIRECTORY_H

#include "server/persist/part/decode/part_dictionary_decode.h"
#include "server/persist/part/decode/part_stripe_decode.h"

struct part_place {
	uint32_t chunk; /* UINT32_MAX: nothing is stored */
	uint32_t offset, bytes;
};

struct part_stripe_entry {
	uint32_t chunk; /* headers; rows are the next, then moments */
	struct part_stripe_shape shape;
	bool has_moments;
};

struct part_entry {
	struct part_partition info;
	struct part_dictionary_shape shape;
	struct part_place sections[PART_SECTIONS];
};

struct part_directory {
	char *bytes; /* what texts point into */
	struct slice *texts;
	uint32_t texts_count;
	struct part_chunk *chunks;
	uint32_t chunks_count;
	struct part_stripe_entry *stripes;
	uint32_t stripes_count;
	bool has_moments;	      /* some stripe */
	struct part_partition *types; /* the fields of a type */
	uint32_t types_count;
	struct part_entry *partitions;
	uint32_t partitions_count;
	int levels;    /* that its version has */
	size_t memory; /* bytes */
};

/* `end` is where the chunks end in the file, `version` that of the part. */
MUST_USE int part_directory_decode(struct slice bytes, uint64_t end, uint32_t version,
				   struct part_directory *ret, struct err *err);
void part_directory_free(struct part_directory *directory);

#endif
