/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_format - constants that the writer and the reader of parts share (docs/formats/part.md);
 * only for part_*.c.
 *
 * Rows are gaps of ranks: a gap below PART_GAP_WIDE is one byte; up to PART_GAP_LONG, the byte says
 * the multiple of 256 and a byte of another stream the rest; longer ones are PART_GAP_LONG and four
 * bytes of that stream. So a decoder steps through one stream at a fixed pace, and each stream has
 * an entropy coder of its own. Gaps grow towards the end of a report: so the rows of each report
 * are cut into *strata* of equal size, and the gaps of all first strata come first, with an entropy
 * coder of their own, then those of all second strata, and so on.
 *
 * Ranks are not stored but follow from *classes*, one byte per node: how many rows name the node,
 * exactly up to 16, then a quarter of an octave wide. Ranks number the nodes by class, highest
 * first, then by node number.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_FORMAT_H
#define FIRN_SERVER_PERSIST_PART_PART_FORMAT_H

#include "model/segment.h"
#include "server/persist/part/part.h"
#include "server/persist/part/part_chunk.h"

#define PART_MAGIC "FIRNPRT"
#define PART_MAGIC_END "FIRNEND"
#define PART_HEADER_BYTES 24u
#define PART_TRAILER_BYTES 64u

#define PART_BLOCK_REPORTS_MAX 8192u
#define PART_BLOCK_ROWS_MAX 65536u /* but for a report that has more, as with the next */
#define PART_BLOCK_MOMENTS_MAX ((size_t)1 << 18)

/* Sections of a partition's dictionaries; the first two are read to select. */
enum part_section {
	PART_SECTION_INDEX,
	PART_SECTION_SERIES,
	PART_SECTION_STRINGS,
	PART_SECTION_FRAMES,
	PART_SECTION_NODES,
	PART_SECTIONS
};

enum part_stripe_flag { PART_STRIPE_LABELS = 1, PART_STRIPE_ROLLUP = 2, PART_STRIPE_FLAGS = 3 };

/* How the values of a column are kept in a stripe. */
enum part_column_mode {
	PART_COLUMN_CONSTANT,	  /* all are the number given */
	PART_COLUMN_PROPORTIONAL, /* that many times those of column 0 */
	PART_COLUMN_VALUES,	  /* each, divided by the number given */
	/* The same, all positive: nothing is kept of reports whose total says it all. */
	PART_COLUMN_COUNTS,
	PART_COLUMN_MODES
};

/* Streams of a stripe's rows. */
enum part_stream {
	PART_STREAM_GAPS = 1,
	PART_STREAM_GAP_BYTES,
	PART_STREAM_LABELS,
	PART_STREAM_COLUMNS = 16, /* + 2 * column: distances between values other than 1; + 1: them
				   */
	PART_STREAMS = PART_STREAM_COLUMNS + 2 * TABLES_COLUMNS_PER_GROUP_MAX
};

#define PART_GAP_WIDE 192u
#define PART_GAP_LONG 255u
#define PART_GAP_SHORT_MAX (PART_GAP_WIDE + (PART_GAP_LONG - PART_GAP_WIDE) * 256u - 1)

#define PART_STRATA_MAX 16u

/*
 * The number of rows of a report, and its total minus that number, share one byte if both are
 * small. Larger ones follow in a list of their own.
 */
#define PART_NIBBLE_MORE 15u

/* Row of a report with so many rows at which a stratum begins. */
static inline uint32_t part_stratum_begin(uint32_t rows, uint32_t stratum, uint32_t strata)
{
	return (uint32_t)(((uint64_t)stratum * rows + strata - 1) / strata);
}

/*
 * The frame of a node is coded by its place among the callees of its parent's frame. The more
 * callees, the less predictable the place, so places are stored in separate lists by the number of
 * callees.
 */
#define PART_PLACE_LISTS 4u

static inline unsigned int part_place_list(uint32_t callees)
{
	return callees < 2 ? 0 : callees < 4 ? 1 : callees < 16 ? 2 : 3;
}

#define PART_CLASS_EXACT 16u
#define PART_CLASSES 256u

static inline unsigned int part_class_of(uint64_t rows)
{
	unsigned int octave;

	if (rows <= PART_CLASS_EXACT)
		return (unsigned int)rows;
	octave = 63u - (unsigned int)__builtin_clzll(rows); /* 4.. */
	return PART_CLASS_EXACT + 4 * (octave - 4) + (unsigned int)(rows >> (octave - 2) & 3);
}

/* Fields of frames that are ids of strings, in the order in which strings are numbered by them. */
static const size_t part_frame_texts[] = {
	offsetof(struct frame, mapping_file), offsetof(struct frame, build_id),
	offsetof(struct frame, function),     offsetof(struct frame, system_name),
	offsetof(struct frame, file),
};

#define PART_FRAME_TEXTS (sizeof(part_frame_texts) / sizeof(part_frame_texts[0]))

/* How the text of a frame is kept. */
enum part_text_code {
	PART_TEXT_SAME, /* as in the frame before */
	PART_TEXT_NEW,	/* the next that no frame had in this field */
	PART_TEXT_NONE,
	PART_TEXT_BACK, /* + how far behind the newest */
};

/* The sum of values, held to the ends of int64. */
static inline int64_t part_clamp(__int128 sum)
{
	if (sum > INT64_MAX)
		return INT64_MAX;
	return sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
}

#endif
