/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_chunk - the pieces of a part file that are compressed and checked as a whole.
 *
 * A chunk's stored bytes are its raw bytes, or one or more zstd frames of them (streams of
 * different kinds compress better in frames of their own). Small sections of neighbouring
 * partitions share a chunk.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_CHUNK_H
#define FIRN_SERVER_PERSIST_PART_PART_CHUNK_H

#include <zstd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "server/persist/disk/throttle.h"

#define PART_CHUNK_RAW_BYTES_MAX ((uint32_t)1 << 30)
#define PART_CHUNK_RATIO_MAX 16384u /* raw bytes per stored one, at most: no bombs */

struct part_chunk {
	uint64_t offset; /* in the file */
	uint32_t stored, raw;
	uint32_t crc; /* CRC32C of the stored bytes */
};

struct part_chunk_builder {
	struct strbuf raw;
	size_t *cuts; /* ends of frames */
	size_t cuts_count, cuts_capacity;
	struct strbuf packed;
};

void part_chunk_builder_free(struct part_chunk_builder *builder);

/* A frame ends here if it has at least so many bytes. */
void part_chunk_cut(struct part_chunk_builder *builder, size_t bytes_min);

/* A level for rows of stripes: matches, which are slow to unpack, only where they gain something.
 */
#define PART_CHUNK_ROWS 0

/*
 * Gives the bytes to be stored, which are valid until the builder is used again, fills all of `ret`
 * but the offset, and empties the builder. ERR_LIMIT when there is more than
 * PART_CHUNK_RAW_BYTES_MAX, ERR_CANCELLED once the throttle (may be NULL) is stopped.
 */
MUST_USE int part_chunk_pack(struct part_chunk_builder *builder, ZSTD_CCtx *encoder, int level,
			     struct throttle *throttle, struct part_chunk *ret,
			     struct slice *ret_stored, struct err *err);

/* True if the sizes are plausible: then memory may be allocated for them. */
bool part_chunk_is_plausible(const struct part_chunk *chunk);

/* Checks and unpacks into chunk->raw bytes at `to`. ERR_CORRUPT. */
MUST_USE int part_chunk_unpack(const struct part_chunk *chunk, ZSTD_DCtx *decoder,
			       const char *stored, char *to, struct err *err);

#endif
