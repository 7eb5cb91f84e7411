/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow_read - an Apache Arrow IPC stream to columns
 * (arrow.apache.org/docs/format/Columnar.html, format/Message.fbs, Schema.fbs).
 *
 * All batches of a stream are read at once: integers, booleans, times, texts, bytes, lists, views,
 * structs, run ends and dictionaries, in one another up to ARROW_READ_DEPTH_MAX; bodies as they are
 * or in LZ4 frames or zstd, buffer by buffer. Columns of other fixed-width types are skipped,
 * unions refused. Reading checks everything: offsets, views, run ends, indices of dictionaries and
 * the lengths of buffers. So the accessors below cannot fail, whatever the bytes were.
 *
 * A column is an array; a list's items and a struct's fields are arrays within it. Accessors
 * resolve dictionaries and runs: they take row numbers of the column. Dictionaries that grow
 * (isDelta) are chunks; a dictionary that is sent again applies to the batches after it.
 *
 * Memory: an arena of the reader's, within memory_max, decompressed bytes included. Values point
 * into it and into the stream, which must outlive it. One thread at a time.
 */
#ifndef FIRN_CODEC_WIRE_ARROW_READ_H
#define FIRN_CODEC_WIRE_ARROW_READ_H

#include "base/arena.h"
#include "base/err.h"

#define ARROW_READ_DEPTH_MAX 12	      /* types in types */
#define ARROW_READ_ROWS_MAX (1 << 26) /* of one array */
#define ARROW_READ_FIELDS_MAX 4096
#define ARROW_READ_CHUNKS_MAX 256 /* of a dictionary */

enum arrow_shape {
	ARROW_SHAPE_NULL,
	ARROW_SHAPE_NUMBER, /* integers, times, durations, booleans */
	ARROW_SHAPE_BYTES,  /* texts too, in all their forms */
	ARROW_SHAPE_LIST,
	ARROW_SHAPE_STRUCT,
	ARROW_SHAPE_OTHER, /* there, but not looked at */
};

struct arrow_array;
struct arrow_field;

struct arrow_batch {
	int64_t rows;
	const struct arrow_array *const *columns; /* as many as the stream has */
};

struct arrow_stream {
	struct arena arena;
	const struct arrow_field *fields; /* of the schema */
	size_t columns;
	struct arrow_batch *batches;
	size_t batches_count;
	struct slice schema; /* flatbuffer of the schema's message */
	size_t consumed;     /* of the bytes; another stream may follow */
};

/*
 * `ret` is to be freed in any case. A stream may end without its mark. Errors say which message:
 * ERR_INVALID, ERR_LIMIT over memory_max and the limits above, ERR_UNSUPPORTED for types.
 */
MUST_USE int arrow_read(struct slice stream, size_t memory_max, struct arrow_stream *ret,
			struct err *err);
void arrow_stream_free(struct arrow_stream *stream);

struct slice arrow_column_name(const struct arrow_stream *stream, size_t column);
/* The schema's own pairs; empty: it has none of that key. */
struct slice arrow_metadata(const struct arrow_stream *stream, const char *key);

/* Shape and length of the values themselves: dictionaries and runs are looked through. */
enum arrow_shape arrow_shape(const struct arrow_array *array);
int64_t arrow_length(const struct arrow_array *array);

/* Rows are below arrow_length. Of another shape, and where it is null: 0, empty, NULL. */
bool arrow_is_null(const struct arrow_array *array, int64_t row);
int64_t arrow_number(const struct arrow_array *array, int64_t row); /* times in ns */
struct slice arrow_bytes(const struct arrow_array *array, int64_t row);
/* A list's items, which are rows *ret_first and the *ret_count - 1 behind it of what is returned.
 */
const struct arrow_array *arrow_items(const struct arrow_array *array, int64_t row,
				      int64_t *ret_first, int64_t *ret_count);
/* Fields of a struct, and of it within dictionaries and runs: asked for the same row. */
size_t arrow_fields(const struct arrow_array *array);
struct slice arrow_field_name(const struct arrow_array *array, size_t field);
/* The struct's own array, and which of its rows `row` is: fields are asked for that one. */
const struct arrow_array *arrow_struct(const struct arrow_array *array, int64_t row,
				       int64_t *ret_row);
const struct arrow_array *arrow_field(const struct arrow_array *of_struct, size_t field);

#endif
