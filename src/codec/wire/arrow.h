/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow - columns as an Apache Arrow IPC stream: schema, dictionaries, one record batch, end
 * (arrow.apache.org/docs/format/Columnar.html, format/Message.fbs, Schema.fbs). Little-endian, no
 * compression, format version V5. A pure function; what it writes is borrowed until it returns.
 */
#ifndef FIRN_CODEC_WIRE_ARROW_H
#define FIRN_CODEC_WIRE_ARROW_H

#include "base/slice.h"
#include "base/strbuf.h"

enum arrow_type {
	ARROW_BOOL, /* values: a byte per row, 0 or 1 */
	ARROW_UINT8,
	ARROW_UINT16,
	ARROW_UINT32,
	ARROW_UINT64,
	ARROW_INT8,
	ARROW_INT16,
	ARROW_INT32,
	ARROW_INT64,
	ARROW_TEXT,	   /* texts: one per row; UTF-8 */
	ARROW_BINARY,	   /* the same, of bytes */
	ARROW_TEXT_DICT,   /* values: int32, which of `texts`; UTF-8 */
	ARROW_BINARY_DICT, /* the same, of bytes */
	ARROW_UINT32_LIST, /* offsets: rows + 1; items: uint32 */
	ARROW_INT64_LIST,  /* the same; items: int64 */
};

struct arrow_column {
	const char *name;
	enum arrow_type type;
	const void *values;   /* of the type's width, row by row */
	const uint8_t *valid; /* a byte per row; NULL: the column cannot be null */
	const struct slice *texts;
	size_t texts_count;
	const int32_t *offsets;
	const void *items;
};

#define ARROW_ROWS_MAX ((size_t)INT32_MAX)

/* At most ARROW_ROWS_MAX rows, texts per column, bytes of text per column and items per column. */
void arrow_write(const struct arrow_column *columns, size_t columns_count, size_t rows,
		 struct strbuf *out);

/* The same, with a pair in the schema's metadata. */
void arrow_write_noted(const struct arrow_column *columns, size_t columns_count, size_t rows,
		       const char *key, const char *value, struct strbuf *out);

/* The narrowest type that holds 0 .. largest, and the values in it. `to` has room for 8 each. */
enum arrow_type arrow_narrow_unsigned(const uint64_t *values, size_t count, void *to);
enum arrow_type arrow_narrow_signed(const int64_t *values, size_t count, void *to);

#endif
