/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_format - the numbers of the symbol table's file that its writer and its readers share.
 * docs/formats/symbol-table.md is the description. All integers are little-endian.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_FORMAT_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_FORMAT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define SYMBOL_MAGIC "FIRNSYMT"
#define SYMBOL_VERSION 4

/* Offsets in the header. */
#define SYMBOL_AT_VERSION 8
#define SYMBOL_AT_HEADER_CRC 12 /* of the header's bytes behind this field */
#define SYMBOL_AT_BODY_CRC 16	/* of the bytes behind the header */
#define SYMBOL_AT_MAKER 20	/* what tells versions of firn apart */
#define SYMBOL_AT_BODY_BYTES 24
#define SYMBOL_AT_ORIGIN 32
#define SYMBOL_AT_ID_KIND 33
#define SYMBOL_AT_MACHINE 34
#define SYMBOL_AT_TYPE 36
#define SYMBOL_AT_HAS_BINARY 38
#define SYMBOL_AT_TRIES 39
#define SYMBOL_AT_BINARY_BYTES 40
#define SYMBOL_AT_DEBUG_BYTES 48
#define SYMBOL_AT_COUNTS 56 /* u32 each, see below */
#define SYMBOL_AT_SPANS 96  /* (offset, bytes), u64 each */
#define SYMBOL_HEADER_BYTES 320

enum symbol_count {
	SYMBOL_COUNT_REGIONS,
	SYMBOL_COUNT_BLOCKS,
	SYMBOL_COUNT_SCOPES,
	SYMBOL_COUNT_FUNCTIONS,
	SYMBOL_COUNT_FILES,
	SYMBOL_COUNT_TEXTS,
	SYMBOL_COUNT_SEGMENTS,
	SYMBOL_COUNT_SOURCES,
	SYMBOL_COUNT_TEXTS_PER_BLOCK,
	SYMBOL_COUNT_UNNAMED, /* functions, the last ones */
	SYMBOL_COUNTS
};

enum symbol_part {
	SYMBOL_PART_ROWS,
	SYMBOL_PART_BUILD_ID,
	SYMBOL_PART_NOTE,
	SYMBOL_PART_SEGMENTS,
	SYMBOL_PART_SOURCES,
	SYMBOL_PART_REGIONS,
	SYMBOL_PART_STARTS,
	SYMBOL_PART_SCOPES,
	SYMBOL_PART_FUNCTIONS,
	SYMBOL_PART_TEXTS,
	SYMBOL_PARTS
};

#define SYMBOL_SEGMENT_BYTES 40
#define SYMBOL_SOURCE_BYTES 16
#define SYMBOL_REGION_BYTES 16
#define SYMBOL_START_BYTES 8 /* of a block of rows: address low, offset */
#define SYMBOL_SLACK_BYTES 8 /* zeros at the end: bits are read 8 bytes at a time */

#define SYMBOL_PACK_RECORDS 64
#define SYMBOL_PACK_FIELDS_MAX 4
#define SYMBOL_PACK_FIELD_BYTES 3 /* of each field, in the block's head */
#define SYMBOL_FUNCTIONS_MAX ((uint32_t)1 << 24)
#define SYMBOL_TEXTS_PER_BLOCK_MAX 4096
/* Without its NUL: so SYMBOL_TEXTS_MANY of the longest fit a block. */
#define SYMBOL_TEXT_BYTES_MAX ((size_t)64 * 1024 - 1)
#define SYMBOL_TEXTS_MANY 512
#define SYMBOL_TEXT_BLOCK_BYTES_MAX ((size_t)32 << 20) /* unpacked */

/* Fields of the records. */
enum { ROW_STEP, ROW_SCOPE, ROW_LINE, ROW_FILE, ROW_FIELDS };
enum { SCOPE_PARENT_STEP, SCOPE_FUNCTION, SCOPE_LINE, SCOPE_FILE, SCOPE_FIELDS };
enum { FUNCTION_FILE, FUNCTION_LINE, FUNCTION_FIELDS };

/* Numbers of a function's two texts. */
enum { FUNCTION_NAME, FUNCTION_LINKAGE_NAME, FUNCTION_TEXTS };

static inline uint16_t symbol_u16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return le16toh(value);
}

static inline uint32_t symbol_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t symbol_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

/* `width` bits, at most 32, from bit `bit` on; 8 bytes from there must be readable. */
static inline uint32_t symbol_bits(const uint8_t *bytes, uint64_t bit, unsigned width)
{
	return (uint32_t)(symbol_u64(bytes + bit / 8) >> bit % 8 & ((1ull << width) - 1));
}

#endif
