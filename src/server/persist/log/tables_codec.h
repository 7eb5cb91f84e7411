/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_codec - tables as bytes: the payload of the log.
 *
 * A run of sections, each self-describing and checked by itself (docs/formats/wal.md):
 *
 *   offset size
 *        0    4  type, enum tables_section_type
 *        4    2  version of the encoding within
 *        6    2  compression: 0 none, 1 zstd
 *        8    8  raw bytes (after decompression)
 *       16    8  stored bytes
 *       24    4  CRC32C of the header before it and the stored bytes
 *       28       stored bytes
 *
 * Every type occurs once, but for those of moments, which may be missing; unknown types are skipped
 * (a newer writer), an unknown version of a known type is ERR_UNSUPPORTED. The encoder keeps ids as
 * they are. Encoding and decoding are pure functions, safe from any thread.
 */
#ifndef FIRN_SERVER_PERSIST_LOG_TABLES_CODEC_H
#define FIRN_SERVER_PERSIST_LOG_TABLES_CODEC_H

#include "base/err.h"
#include "base/strbuf.h"
#include "model/tables.h"

enum tables_section_type {
	TABLES_SECTION_STRINGS = 1, /* lengths, then bytes */
	TABLES_SECTION_LABELS,	    /* label sets with their labels */
	TABLES_SECTION_GROUPS,	    /* groups with their columns */
	TABLES_SECTION_SERIES,
	TABLES_SECTION_FRAMES,	   /* one field after the other */
	TABLES_SECTION_NODES,	   /* distances to the parents, then frames */
	TABLES_SECTION_REPORTS,	   /* one field after the other, then totals */
	TABLES_SECTION_STACKS,	   /* of the rows */
	TABLES_SECTION_ROW_LABELS, /* runs */
	TABLES_SECTION_VALUES,
	TABLES_SECTION_LINKS,	/* this and the next: only when there are moments */
	TABLES_SECTION_MOMENTS, /* how many of each report, rows, ticks, links */
	TABLES_SECTIONS_END
};

#define TABLES_SECTION_HEADER_BYTES 28u

struct tables_section {
	uint32_t type;
	uint64_t offset; /* of the header, from where encoding began */
	uint64_t bytes;	 /* header and stored bytes */
};

struct tables_layout {
	struct tables_section sections[TABLES_SECTIONS_END];
	uint32_t count;
};

/*
 * Appends the sections to `out`. zstd_level 0 leaves them plain (the log compresses the whole).
 * ret_layout may be NULL.
 */
void tables_encode(const struct tables_view *view, int zstd_level, struct strbuf *out,
		   struct tables_layout *ret_layout);

/* Decoded tables: a view that owns its arrays. */
struct tables_image {
	struct tables_view view;
	size_t bytes; /* of memory */
};

/*
 * Decodes all of `bytes`. What comes out passed tables_check. max_raw_bytes bounds the sum of the
 * raw sections (ERR_LIMIT); memory is at most 60 times that (a frame of 56 bytes has at least 12).
 * Errors name the section and the rule.
 */
MUST_USE int tables_decode(struct slice bytes, uint64_t max_raw_bytes, struct tables_image *ret,
			   struct err *err);
void tables_image_free(struct tables_image *image);

#endif
