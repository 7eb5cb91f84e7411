/* SPDX-License-Identifier: Apache-2.0 */
/* part_reader_int - the inside of an open part; only for part_reader.c and part_block.c. */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_READER_INT_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_READER_INT_H

#include "base/lock.h"
#include "server/persist/part/decode/part_directory.h"
#include "server/persist/part/decode/part_reader.h"

/* An unpacked chunk of sections, while somebody looks at it. */
struct chunk_bytes {
	uint32_t references, chunk;
	char *raw;
};

struct part_reader_partition {
	struct part_reader *reader;
	const struct part_entry *entry;
	uint32_t number;
	struct lock lock;
	uint32_t users;	       /* segments; guarded, as all below */
	uint32_t stacks_users; /* of these, those that have loaded stacks */
	bool has_series, has_stacks;
	struct part_series_image series;
	struct part_stacks_image stacks;
};

struct part_reader {
	struct vfs_file *file;
	struct part_info info;
	struct part_directory directory;
	struct part_reader_partition *partitions;
	uint32_t *runs;	   /* part_find.h */
	uint64_t instance; /* no two open readers have the same */
	_Atomic size_t bytes;
	struct part_budget *budget; /* may be NULL */
	struct lock lock;
	struct chunk_bytes *kept[PART_SECTIONS]; /* guarded, as all below */
	bool damaged;
	struct err damage;
};

/* The whole range or an error. */
MUST_USE int part_reader_read(struct part_reader *reader, char *to, size_t len, uint64_t offset,
			      struct err *err);

/* The outermost frame of an error: names the file, remembers damage. Returns rc. */
MUST_USE int part_reader_note(struct part_reader *reader, int rc, struct err *cause,
			      struct err *err);

/* part_block.c: segment_ops.read. */
MUST_USE int part_block_read(const struct segment *segment, uint32_t block, enum segment_want want,
			     struct segment_buffer *buffer, struct segment_block *ret,
			     struct err *err);

/* segment_ops.read_heads. */
MUST_USE int part_block_read_heads(const struct segment *segment, uint32_t block,
				   struct segment_buffer *buffer, struct segment_heads *ret,
				   struct err *err);

/* Checks the totals of the stripe that was read last with its rows. */
MUST_USE int part_block_check_totals(const struct segment_buffer *buffer, struct err *err);

#endif
