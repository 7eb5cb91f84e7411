/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/arrow_read.h"

#include <endian.h>

#include "base/strbuf.h"
#include "codec/archive/compress.h"
#include "codec/archive/frames.h"
#include "codec/wire/flatbuffer_read.h"

#define CONTINUATION UINT32_MAX
#define VIEW_BYTES 16u
#define VIEW_INLINE_BYTES 12
#define NODE_BYTES 16u
#define BUFFER_BYTES 16u
#define NS_PER_S 1000000000ll

/* Fields and values of format/Message.fbs and format/Schema.fbs. */
enum { MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER, MESSAGE_BODY_LENGTH };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { SCHEMA_ENDIANNESS, SCHEMA_FIELDS, SCHEMA_METADATA };
enum { PAIR_KEY, PAIR_VALUE };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_TYPE_TYPE, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN };
enum { ENCODING_ID, ENCODING_INDEX };
enum { INT_BITS, INT_SIGNED };
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VARIADIC };
enum { DICTIONARY_ID, DICTIONARY_DATA, DICTIONARY_IS_DELTA };
enum { CODEC_NONE = -1, CODEC_LZ4 = 0, CODEC_ZSTD = 1 };
enum type {
	TYPE_NULL = 1,
	TYPE_INT = 2,
	TYPE_FLOAT = 3,
	TYPE_BINARY = 4,
	TYPE_UTF8 = 5,
	TYPE_BOOL = 6,
	TYPE_DECIMAL = 7,
	TYPE_DATE = 8,
	TYPE_TIME = 9,
	TYPE_TIMESTAMP = 10,
	TYPE_INTERVAL = 11,
	TYPE_LIST = 12,
	TYPE_STRUCT = 13,
	TYPE_FIXED_BINARY = 15,
	TYPE_FIXED_LIST = 16,
	TYPE_MAP = 17,
	TYPE_DURATION = 18,
	TYPE_LARGE_BINARY = 19,
	TYPE_LARGE_UTF8 = 20,
	TYPE_LARGE_LIST = 21,
	TYPE_RUN_END = 22,
	TYPE_BINARY_VIEW = 23,
	TYPE_UTF8_VIEW = 24,
	TYPE_LIST_VIEW = 25,
	TYPE_LARGE_LIST_VIEW = 26,
};

struct arrow_field {
	struct slice name;
	enum type type;
	unsigned bytes; /* of a value, an offset or a size; 0: of no fixed width */
	bool is_signed;
	int64_t scale; /* of times, to ns; of a fixed list, its length */
	bool has_dictionary;
	int64_t dictionary;
	unsigned index_bytes;
	struct arrow_field *children;
	size_t children_count;
};

struct chunk {
	const struct arrow_array *values;
	int64_t first; /* index of its first value */
};

struct dictionary {
	int64_t length;
	const struct chunk *chunks;
	size_t count;
};

struct arrow_array {
	const struct arrow_field *field;
	const struct dictionary *dictionary; /* not NULL: `first` are indices */
	int64_t length;
	const uint8_t *valid;	    /* bits; NULL: nothing is null */
	struct slice first, second; /* offsets and bytes; offsets and sizes; values */
	const struct slice *more;   /* of views */
	const struct arrow_array *const *children;
};

/* A dictionary as it is at the moment. */
struct known {
	const struct arrow_field *field; /* the first that has it: all have values of one type */
	const struct dictionary *now;
};

struct reader {
	struct arrow_stream *to;
	struct known *known;
	size_t known_count, fields_count;
	struct err *err;
};

/* The message being read. */
struct body {
	struct slice bytes, nodes, buffers, variadic;
	int codec;
};

static int no_room(const struct reader *reader)
{
	return err_set(reader->err, ERR_LIMIT, "Arrow: more than %zu bytes of memory",
		       reader->to->arena.budget_bytes);
}

static int invalid(const struct reader *reader, const struct arrow_field *field, const char *what)
{
	return err_set(reader->err, ERR_INVALID, "Arrow: column \"%.*s\": %s",
		       SLICE_FMT(field->name), what);
}

static uint64_t load(const void *from, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, from, bytes);
	return le64toh(value);
}

static int64_t load_signed(const void *from, unsigned bytes)
{
	unsigned shift = 64 - 8 * bytes;

	return (int64_t)(load(from, bytes) << shift) >> shift;
}

static int64_t number_at(struct slice from, int64_t index, unsigned bytes)
{
	return load_signed(from.data + (size_t)index * bytes, bytes);
}

/* The schema. */

static int64_t scale_of(const struct flatbuffer_table *type, uint64_t otherwise)
{
	static const int64_t scales[] = { NS_PER_S, NS_PER_S / 1000, NS_PER_S / 1000000, 1 };
	uint64_t unit = flatbuffer_read(type, 0, 2, otherwise);

	return unit < sizeof(scales) / sizeof(scales[0]) ? scales[unit] : 1;
}

static int read_int(const struct reader *reader, const struct arrow_field *field,
		    const struct flatbuffer_table *type, unsigned *ret_bytes, bool *ret_signed)
{
	uint64_t bits = flatbuffer_read(type, INT_BITS, 4, 32);

	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return invalid(reader, field, "integers of no known width");
	*ret_bytes = (unsigned)bits / 8;
	*ret_signed = flatbuffer_read(type, INT_SIGNED, 1, 0);
	return 0;
}

static int read_type(const struct reader *reader, const struct flatbuffer_table *table,
		     struct arrow_field *field)
{
	struct flatbuffer_table type = flatbuffer_child(table, FIELD_TYPE);
	uint64_t width;

	field->type = (enum type)flatbuffer_read(table, FIELD_TYPE_TYPE, 1, 0);
	field->scale = 1;
	field->bytes = 4;
	switch (field->type) {
	case TYPE_INT:
		return read_int(reader, field, &type, &field->bytes, &field->is_signed);
	case TYPE_TIMESTAMP:
	case TYPE_DURATION:
		field->bytes = 8;
		field->is_signed = true;
		field->scale = scale_of(&type, field->type == TYPE_DURATION ? 1 : 0);
		return 0;
	case TYPE_LARGE_BINARY:
	case TYPE_LARGE_UTF8:
	case TYPE_LARGE_LIST:
	case TYPE_LARGE_LIST_VIEW:
		field->bytes = 8;
		return 0;
	case TYPE_FIXED_BINARY:
	case TYPE_FIXED_LIST:
		width = flatbuffer_read(&type, 0, 4, 0);
		if (width > UINT16_MAX)
			return invalid(reader, field, "a fixed width over 65535");
		field->bytes = (unsigned)width;
		return 0;
	case TYPE_NULL:
	case TYPE_FLOAT:
	case TYPE_BINARY:
	case TYPE_UTF8:
	case TYPE_BOOL:
	case TYPE_DECIMAL:
	case TYPE_DATE:
	case TYPE_TIME:
	case TYPE_INTERVAL:
	case TYPE_LIST:
	case TYPE_STRUCT:
	case TYPE_MAP:
	case TYPE_RUN_END:
	case TYPE_BINARY_VIEW:
	case TYPE_UTF8_VIEW:
	case TYPE_LIST_VIEW:
		return 0;
	default:
		return err_set(reader->err, ERR_UNSUPPORTED,
			       "Arrow: column \"%.*s\" is of type %d, which is not read",
			       SLICE_FMT(field->name), (int)field->type);
	}
}

static size_t children_of(enum type type)
{
	switch (type) {
	case TYPE_LIST:
	case TYPE_LARGE_LIST:
	case TYPE_LIST_VIEW:
	case TYPE_LARGE_LIST_VIEW:
	case TYPE_FIXED_LIST:
	case TYPE_MAP:
		return 1;
	case TYPE_RUN_END:
		return 2;
	default:
		return 0;
	}
}

static int read_dictionary_id(struct reader *reader, const struct flatbuffer_table *table,
			      struct arrow_field *field)
{
	struct flatbuffer_table encoding = flatbuffer_child(table, FIELD_DICTIONARY), index;
	bool is_signed;

	if (!encoding.at)
		return 0;
	field->has_dictionary = true;
	field->dictionary = (int64_t)flatbuffer_read(&encoding, ENCODING_ID, 8, 0);
	index = flatbuffer_child(&encoding, ENCODING_INDEX);
	field->index_bytes = 4;
	if (index.at && read_int(reader, field, &index, &field->index_bytes, &is_signed))
		return -ERR_INVALID;
	for (size_t i = 0; i < reader->known_count; i++)
		if (reader->known[i].field->dictionary == field->dictionary)
			return 0;
	reader->known[reader->known_count++].field = field;
	return 0;
}

/* Fields of a schema or of a field, which stand in vectors of tables; they become `*ret`. */
static int read_fields(struct reader *reader, const struct flatbuffer_table *table, unsigned from,
		       unsigned depth, struct arrow_field **ret, size_t *ret_count)
{
	size_t count = flatbuffer_tables(table, from);
	int rc = 0;

	reader->fields_count += count;
	if (depth > ARROW_READ_DEPTH_MAX || count > ARROW_READ_FIELDS_MAX ||
	    reader->fields_count > ARROW_READ_FIELDS_MAX)
		return err_set(reader->err, ERR_LIMIT, "Arrow: more than %d fields, or %d levels",
			       ARROW_READ_FIELDS_MAX, ARROW_READ_DEPTH_MAX);
	*ret = arena_new_array(&reader->to->arena, struct arrow_field, count + 1);
	if (!*ret)
		return no_room(reader);
	*ret_count = count;
	for (size_t i = 0; i < count && !rc; i++) {
		struct flatbuffer_table one = flatbuffer_table_at(table, from, i);
		struct arrow_field *field = &(*ret)[i];

		field->name = flatbuffer_string(&one, FIELD_NAME);
		rc = read_type(reader, &one, field);
		if (!rc)
			rc = read_fields(reader, &one, FIELD_CHILDREN, depth + 1, &field->children,
					 &field->children_count);
		if (!rc && field->children_count < children_of(field->type))
			rc = invalid(reader, field, "its type lacks a child");
		if (!rc)
			rc = read_dictionary_id(reader, &one, field);
	}
	return rc;
}

static int read_schema(struct reader *reader, const struct flatbuffer_table *schema)
{
	struct arrow_field *fields;
	int rc;

	if (flatbuffer_read(schema, SCHEMA_ENDIANNESS, 2, 0))
		return err_set(reader->err, ERR_UNSUPPORTED, "Arrow: big-endian values");
	reader->known = arena_new_array(&reader->to->arena, struct known, ARROW_READ_FIELDS_MAX);
	if (!reader->known)
		return no_room(reader);
	rc = read_fields(reader, schema, SCHEMA_FIELDS, 0, &fields, &reader->to->columns);
	reader->to->fields = fields;
	return rc;
}

/* Buffers. */

static int decompress(const struct reader *reader, int codec, struct slice *bytes)
{
	struct arena *arena = &reader->to->arena;
	int64_t len = bytes->len < 8 ? -2 : (int64_t)load(bytes->data, 8);
	struct slice packed = slice_tail(*bytes, bytes->len < 8 ? bytes->len : 8);
	struct strbuf out = { 0 };
	int rc;

	if (len == -1) {
		*bytes = packed;
		return 0;
	}
	if (len < 0)
		return err_set(reader->err, ERR_INVALID, "Arrow: a compressed buffer without size");
	if ((uint64_t)len > arena->budget_bytes - arena->used_bytes)
		return no_room(reader);
	rc = codec == CODEC_LZ4 ? frames_unlz4(packed, (size_t)len, &out, reader->err)
				: compress_unzstd(packed, (size_t)len, &out, reader->err);
	if (!rc && out.len != (size_t)len)
		rc = err_set(reader->err, ERR_INVALID,
			     "Arrow: a buffer of %zu bytes says that it has %lld", out.len,
			     (long long)len);
	if (!rc) {
		*bytes = arena_copy(arena, strbuf_slice(&out));
		if (bytes->len != (size_t)len)
			rc = no_room(reader);
	}
	strbuf_free(&out);
	return rc;
}

/* The next buffer of the body, which has at least `bytes`. */
static int take_buffer(const struct reader *reader, struct body *body,
		       const struct arrow_field *field, uint64_t bytes, struct slice *ret)
{
	uint64_t at, len;

	if (body->buffers.len < BUFFER_BYTES)
		return invalid(reader, field, "its buffers are missing");
	at = load(body->buffers.data, 8);
	len = load(body->buffers.data + 8, 8);
	body->buffers = slice_tail(body->buffers, BUFFER_BYTES);
	if (at > body->bytes.len || len > body->bytes.len - at)
		return invalid(reader, field, "a buffer lies outside of the message");
	*ret = slice_from(body->bytes.data + at, (size_t)len);
	if (len && body->codec != CODEC_NONE && decompress(reader, body->codec, ret))
		return reader->err ? -(int)reader->err->code : -ERR_INVALID;
	return ret->len < bytes ? invalid(reader, field, "a buffer is too short") : 0;
}

static bool bit_at(const uint8_t *bits, int64_t index)
{
	return bits[index >> 3] >> (index & 7) & 1;
}

/* Arrays. */

static int read_array(struct reader *reader, const struct arrow_field *field, bool is_value,
		      struct body *body, const struct arrow_array **ret);

static int read_children(struct reader *reader, const struct arrow_field *field, struct body *body,
			 struct arrow_array *array)
{
	const struct arrow_array **children = arena_new_array(
		&reader->to->arena, const struct arrow_array *, field->children_count + 1);
	int rc = children ? 0 : no_room(reader);

	for (size_t i = 0; i < field->children_count && !rc; i++)
		rc = read_array(reader, &field->children[i], false, body, &children[i]);
	array->children = children;
	return rc;
}

/* Offsets that rise, up to `end`; of an array without rows there may be none. */
static int check_offsets(const struct reader *reader, const struct arrow_array *array, int64_t end)
{
	const struct arrow_field *field = array->field;
	int64_t before = 0;

	for (int64_t i = 0; array->length && i <= array->length; i++) {
		int64_t offset = number_at(array->first, i, field->bytes);

		if (offset < before || offset > end)
			return invalid(reader, field, "offsets fall, or lead outside");
		before = offset;
	}
	return 0;
}

static int read_bytes(struct reader *reader, struct body *body, struct arrow_array *array)
{
	const struct arrow_field *field = array->field;
	uint64_t rows = (uint64_t)array->length;
	int rc = take_buffer(reader, body, field, rows ? (rows + 1) * field->bytes : 0,
			     &array->first);

	if (!rc)
		rc = take_buffer(reader, body, field, 0, &array->second);
	return rc ? rc : check_offsets(reader, array, (int64_t)array->second.len);
}

static int check_views(const struct reader *reader, const struct arrow_array *array, uint64_t more)
{
	for (int64_t i = 0; i < array->length; i++) {
		const char *view = array->first.data + (size_t)i * VIEW_BYTES;
		int64_t len = load_signed(view, 4), buffer = load_signed(view + 8, 4),
			at = load_signed(view + 12, 4);

		if ((array->valid && !bit_at(array->valid, i)) ||
		    (len >= 0 && len <= VIEW_INLINE_BYTES))
			continue;
		if (len < 0 || buffer < 0 || (uint64_t)buffer >= more || at < 0 ||
		    (uint64_t)at + (uint64_t)len > array->more[buffer].len)
			return invalid(reader, array->field, "a view leads outside");
	}
	return 0;
}

static int read_views(struct reader *reader, struct body *body, struct arrow_array *array)
{
	uint64_t more = body->variadic.len < 8 ? UINT64_MAX : load(body->variadic.data, 8);
	struct slice *buffers;
	int rc = take_buffer(reader, body, array->field, (uint64_t)array->length * VIEW_BYTES,
			     &array->first);

	if (rc)
		return rc;
	if (more > body->buffers.len / BUFFER_BYTES)
		return invalid(reader, array->field, "buffers of its views are missing");
	body->variadic = slice_tail(body->variadic, 8);
	buffers = arena_new_array(&reader->to->arena, struct slice, (size_t)more + 1);
	if (!buffers)
		return no_room(reader);
	for (uint64_t i = 0; i < more && !rc; i++)
		rc = take_buffer(reader, body, array->field, 0, &buffers[i]);
	array->more = buffers;
	return rc ? rc : check_views(reader, array, more);
}

static int read_list(struct reader *reader, struct body *body, struct arrow_array *array)
{
	const struct arrow_field *field = array->field;
	uint64_t rows = (uint64_t)array->length;
	int rc = take_buffer(reader, body, field, rows ? (rows + 1) * field->bytes : 0,
			     &array->first);

	if (!rc)
		rc = read_children(reader, field, body, array);
	return rc ? rc : check_offsets(reader, array, array->children[0]->length);
}

static int read_list_view(struct reader *reader, struct body *body, struct arrow_array *array)
{
	const struct arrow_field *field = array->field;
	uint64_t bytes = (uint64_t)array->length * field->bytes;
	int rc = take_buffer(reader, body, field, bytes, &array->first);

	if (!rc)
		rc = take_buffer(reader, body, field, bytes, &array->second);
	if (!rc)
		rc = read_children(reader, field, body, array);
	for (int64_t i = 0; i < array->length && !rc; i++) {
		int64_t at = number_at(array->first, i, field->bytes),
			count = number_at(array->second, i, field->bytes);

		if (array->valid && !bit_at(array->valid, i))
			continue;
		if (at < 0 || count < 0 || at > array->children[0]->length ||
		    count > array->children[0]->length - at)
			rc = invalid(reader, field, "a list leads outside");
	}
	return rc;
}

static int check_runs(const struct reader *reader, const struct arrow_array *array)
{
	const struct arrow_array *ends = array->children[0];
	int64_t before = 0;

	if (ends->field->type != TYPE_INT || ends->dictionary || ends->valid)
		return invalid(reader, array->field, "ends of runs that are no numbers");
	if (array->children[1]->length < ends->length)
		return invalid(reader, array->field, "runs without values");
	for (int64_t i = 0; i < ends->length; i++) {
		int64_t end = number_at(ends->first, i, ends->field->bytes);

		if (end <= before)
			return invalid(reader, array->field, "ends of runs fall");
		before = end;
	}
	return before < array->length ? invalid(reader, array->field, "runs end too early") : 0;
}

static int read_plain(struct reader *reader, struct body *body, struct arrow_array *array)
{
	const struct arrow_field *field = array->field;
	uint64_t rows = (uint64_t)array->length, bytes = 0;

	if (field->type == TYPE_BOOL)
		bytes = (rows + 7) / 8;
	else if (arrow_shape(array) != ARROW_SHAPE_OTHER)
		bytes = rows * field->bytes;
	return take_buffer(reader, body, field, bytes, &array->first);
}

static int read_by_type(struct reader *reader, struct body *body, struct arrow_array *array)
{
	switch (array->field->type) {
	case TYPE_BINARY:
	case TYPE_UTF8:
	case TYPE_LARGE_BINARY:
	case TYPE_LARGE_UTF8:
		return read_bytes(reader, body, array);
	case TYPE_BINARY_VIEW:
	case TYPE_UTF8_VIEW:
		return read_views(reader, body, array);
	case TYPE_LIST:
	case TYPE_MAP:
	case TYPE_LARGE_LIST:
		return read_list(reader, body, array);
	case TYPE_LIST_VIEW:
	case TYPE_LARGE_LIST_VIEW:
		return read_list_view(reader, body, array);
	case TYPE_FIXED_LIST:
	case TYPE_STRUCT:
		return read_children(reader, array->field, body, array);
	default:
		return read_plain(reader, body, array);
	}
}

/* Fields have the rows of their struct, items those of their lists. */
static int check_children(const struct reader *reader, const struct arrow_array *array)
{
	const struct arrow_field *field = array->field;

	for (size_t i = 0; field->type == TYPE_STRUCT && i < field->children_count; i++)
		if (array->children[i]->length < array->length)
			return invalid(reader, field, "a field has fewer rows than its struct");
	if (field->type == TYPE_FIXED_LIST &&
	    array->children[0]->length < array->length * (int64_t)field->bytes)
		return invalid(reader, field, "lists without items");
	return 0;
}

static const struct dictionary no_dictionary = { 0, NULL, 0 };

static const struct dictionary *dictionary_of(const struct reader *reader,
					      const struct arrow_field *field)
{
	for (size_t i = 0; i < reader->known_count; i++)
		if (reader->known[i].field->dictionary == field->dictionary && reader->known[i].now)
			return reader->known[i].now;
	return &no_dictionary;
}

static int64_t index_at(const struct arrow_array *array, int64_t row)
{
	return number_at(array->first, row, array->field->index_bytes);
}

static int read_indices(struct reader *reader, struct body *body, struct arrow_array *array)
{
	const struct arrow_field *field = array->field;
	int rc = take_buffer(reader, body, field, (uint64_t)array->length * field->index_bytes,
			     &array->first);

	array->dictionary = dictionary_of(reader, field);
	for (int64_t i = 0; i < array->length && !rc; i++) {
		int64_t index = index_at(array, i);

		if (array->valid && !bit_at(array->valid, i))
			continue;
		if (field->index_bytes < 8)
			index &= (1ll << (8 * field->index_bytes)) - 1;
		if (index < 0 || index >= array->dictionary->length)
			rc = invalid(reader, field, "an index leads outside of its dictionary");
	}
	return rc;
}

static int take_node(const struct reader *reader, struct body *body, struct arrow_array *array,
		     bool *ret_nulls)
{
	if (body->nodes.len < NODE_BYTES)
		return invalid(reader, array->field, "it is missing in a batch");
	array->length = (int64_t)load(body->nodes.data, 8);
	*ret_nulls = load(body->nodes.data + 8, 8) != 0;
	body->nodes = slice_tail(body->nodes, NODE_BYTES);
	if (array->length < 0)
		return invalid(reader, array->field, "a negative length");
	if (array->length > ARROW_READ_ROWS_MAX)
		return err_set(reader->err, ERR_LIMIT, "Arrow: column \"%.*s\": more than %d rows",
			       SLICE_FMT(array->field->name), ARROW_READ_ROWS_MAX);
	return 0;
}

static int take_validity(const struct reader *reader, struct body *body, struct arrow_array *array,
			 bool nulls)
{
	struct slice bits;
	int rc = take_buffer(reader, body, array->field, 0, &bits);

	if (rc || !nulls || !array->length)
		return rc;
	if (bits.len < ((size_t)array->length + 7) / 8)
		return invalid(reader, array->field, "it does not say which values are null");
	array->valid = (const uint8_t *)bits.data;
	return 0;
}

/* `is_value`: of a dictionary, not the indices into one. */
static int read_array(struct reader *reader, const struct arrow_field *field, bool is_value,
		      struct body *body, const struct arrow_array **ret)
{
	struct arrow_array *array = arena_new(&reader->to->arena, struct arrow_array);
	bool nulls = false, by_index = field->has_dictionary && !is_value;
	int rc;

	if (!array)
		return no_room(reader);
	array->field = field;
	*ret = array;
	rc = take_node(reader, body, array, &nulls);
	if (!rc && by_index) {
		rc = take_validity(reader, body, array, nulls);
		return rc ? rc : read_indices(reader, body, array);
	}
	if (!rc && field->type == TYPE_RUN_END) {
		rc = read_children(reader, field, body, array);
		return rc ? rc : check_runs(reader, array);
	}
	if (rc || field->type == TYPE_NULL)
		return rc;
	rc = take_validity(reader, body, array, nulls);
	if (!rc)
		rc = read_by_type(reader, body, array);
	return rc ? rc : check_children(reader, array);
}

/* Messages. */

static int open_body(const struct reader *reader, const struct flatbuffer_table *batch,
		     struct slice bytes, struct body *ret)
{
	struct flatbuffer_table compression = flatbuffer_child(batch, BATCH_COMPRESSION);

	*ret = (struct body){ .bytes = bytes,
			      .nodes = flatbuffer_vector(batch, BATCH_NODES, NODE_BYTES),
			      .buffers = flatbuffer_vector(batch, BATCH_BUFFERS, BUFFER_BYTES),
			      .variadic = flatbuffer_vector(batch, BATCH_VARIADIC, 8),
			      .codec = CODEC_NONE };
	if (compression.at)
		ret->codec = (int)flatbuffer_read(&compression, 0, 1, CODEC_LZ4);
	if (ret->codec > CODEC_ZSTD)
		return err_set(reader->err, ERR_UNSUPPORTED, "Arrow: compression %d", ret->codec);
	return 0;
}

static int add_chunk(const struct reader *reader, struct known *known, bool is_delta,
		     const struct arrow_array *values)
{
	const struct dictionary *before = is_delta && known->now ? known->now : &no_dictionary;
	struct dictionary *now = arena_new(&reader->to->arena, struct dictionary);
	struct chunk *chunks = arena_new_array(&reader->to->arena, struct chunk, before->count + 1);

	if (!now || !chunks)
		return no_room(reader);
	if (before->count == ARROW_READ_CHUNKS_MAX)
		return err_set(reader->err, ERR_LIMIT, "Arrow: a dictionary of more than %d parts",
			       ARROW_READ_CHUNKS_MAX);
	if (before->count)
		memcpy(chunks, before->chunks, before->count * sizeof(*chunks));
	chunks[before->count] = (struct chunk){ values, before->length };
	*now = (struct dictionary){ before->length + values->length, chunks, before->count + 1 };
	known->now = now;
	return 0;
}

static int read_dictionary(struct reader *reader, const struct flatbuffer_table *head,
			   struct slice bytes)
{
	struct flatbuffer_table data = flatbuffer_child(head, DICTIONARY_DATA);
	int64_t id = (int64_t)flatbuffer_read(head, DICTIONARY_ID, 8, 0);
	const struct arrow_array *values;
	struct body body;
	int rc = open_body(reader, &data, bytes, &body);

	for (size_t i = 0; i < reader->known_count && !rc; i++) {
		struct known *known = &reader->known[i];

		if (known->field->dictionary != id)
			continue;
		rc = read_array(reader, known->field, true, &body, &values);
		return rc ? rc
			  : add_chunk(reader, known,
				      flatbuffer_read(head, DICTIONARY_IS_DELTA, 1, 0), values);
	}
	return rc; /* of a field that is not there: nobody asks for it */
}

static int read_batch(struct reader *reader, const struct flatbuffer_table *head,
		      struct slice bytes)
{
	struct arrow_stream *to = reader->to;
	struct arrow_batch *batches =
		arena_new_array(&to->arena, struct arrow_batch, to->batches_count + 1);
	const struct arrow_array **columns =
		arena_new_array(&to->arena, const struct arrow_array *, to->columns + 1);
	int64_t rows = (int64_t)flatbuffer_read(head, BATCH_LENGTH, 8, 0);
	struct body body;
	int rc = open_body(reader, head, bytes, &body);

	if (!batches || !columns)
		return no_room(reader);
	if (!rc && (rows < 0 || rows > ARROW_READ_ROWS_MAX))
		rc = err_set(reader->err, ERR_LIMIT, "Arrow: a batch of %lld rows",
			     (long long)rows);
	for (size_t i = 0; i < to->columns && !rc; i++) {
		rc = read_array(reader, &to->fields[i], false, &body, &columns[i]);
		if (!rc && columns[i]->length < rows)
			rc = invalid(reader, &to->fields[i], "fewer rows than its batch");
	}
	if (rc)
		return rc;
	if (to->batches_count)
		memcpy(batches, to->batches, to->batches_count * sizeof(*batches));
	batches[to->batches_count++] = (struct arrow_batch){ rows, columns };
	to->batches = batches;
	return 0;
}

/* The next message's head and body. *ret is false at the end. */
static int next_message(const struct reader *reader, struct slice *stream, struct slice *head,
			struct slice *bytes, bool *ret)
{
	size_t mark = stream->len >= 4 && load(stream->data, 4) == CONTINUATION ? 4 : 0;
	uint64_t head_bytes, body_bytes;
	struct flatbuffer_table message;

	*ret = false;
	if (!stream->len)
		return 0;
	if (stream->len < mark + 4)
		return err_set(reader->err, ERR_INVALID, "Arrow: the stream ends in a message");
	head_bytes = load(stream->data + mark, 4);
	*stream = slice_tail(*stream, mark + 4);
	if (!head_bytes)
		return 0;
	if (head_bytes > stream->len)
		return err_set(reader->err, ERR_INVALID, "Arrow: the stream ends in a message");
	*head = slice_from(stream->data, (size_t)head_bytes);
	*stream = slice_tail(*stream, (size_t)head_bytes);
	message = flatbuffer_root(*head);
	body_bytes = flatbuffer_read(&message, MESSAGE_BODY_LENGTH, 8, 0);
	if (!message.at)
		return err_set(reader->err, ERR_INVALID, "Arrow: a message without a head");
	if (body_bytes > stream->len)
		return err_set(reader->err, ERR_INVALID, "Arrow: the stream ends in a body");
	*bytes = slice_from(stream->data, (size_t)body_bytes);
	*stream = slice_tail(*stream, (size_t)body_bytes);
	*ret = true;
	return 0;
}

static int read_message(struct reader *reader, struct slice head_bytes, struct slice bytes)
{
	struct flatbuffer_table message = flatbuffer_root(head_bytes);
	struct flatbuffer_table head = flatbuffer_child(&message, MESSAGE_HEADER);
	uint64_t type = flatbuffer_read(&message, MESSAGE_HEADER_TYPE, 1, 0);

	if (!reader->to->schema.len) {
		if (type != HEADER_SCHEMA)
			return err_set(reader->err, ERR_INVALID,
				       "Arrow: no schema at the beginning");
		reader->to->schema = head_bytes;
		return read_schema(reader, &head);
	}
	if (type == HEADER_DICTIONARY)
		return read_dictionary(reader, &head, bytes);
	if (type == HEADER_BATCH)
		return read_batch(reader, &head, bytes);
	return err_set(reader->err, ERR_INVALID, "Arrow: a message of kind %u", (unsigned)type);
}

int arrow_read(struct slice stream, size_t memory_max, struct arrow_stream *ret, struct err *err)
{
	struct err own = { 0 };
	struct reader reader = { .to = ret, .err = err ? err : &own };
	struct slice head, bytes, rest = stream;
	bool more = true;
	int rc = 0;

	*ret = (struct arrow_stream){ .columns = 0 };
	arena_init(&ret->arena, memory_max);
	for (unsigned index = 0; !rc; index++) {
		rc = next_message(&reader, &rest, &head, &bytes, &more);
		if (rc || !more)
			break;
		rc = read_message(&reader, head, bytes);
		if (rc)
			return err_wrap(reader.err, "message %u", index);
	}
	if (!rc && !ret->schema.len)
		return err_set(err, ERR_INVALID, "Arrow: the stream is empty");
	ret->consumed = stream.len - rest.len;
	return rc;
}

void arrow_stream_free(struct arrow_stream *stream)
{
	arena_free(&stream->arena);
	*stream = (struct arrow_stream){ .columns = 0 };
}

/* Looking. */

struct slice arrow_column_name(const struct arrow_stream *stream, size_t column)
{
	return stream->fields[column].name;
}

struct slice arrow_metadata(const struct arrow_stream *stream, const char *key)
{
	struct flatbuffer_table message = flatbuffer_root(stream->schema);
	struct flatbuffer_table schema = flatbuffer_child(&message, MESSAGE_HEADER);
	size_t count = flatbuffer_tables(&schema, SCHEMA_METADATA);

	for (size_t i = 0; i < count; i++) {
		struct flatbuffer_table pair = flatbuffer_table_at(&schema, SCHEMA_METADATA, i);

		if (slice_is(flatbuffer_string(&pair, PAIR_KEY), key))
			return flatbuffer_string(&pair, PAIR_VALUE);
	}
	return (struct slice){ "", 0 };
}

static enum arrow_shape shape_of(const struct arrow_field *field)
{
	while (field->type == TYPE_RUN_END)
		field = &field->children[1];
	switch (field->type) {
	case TYPE_NULL:
		return ARROW_SHAPE_NULL;
	case TYPE_INT:
	case TYPE_BOOL:
	case TYPE_TIMESTAMP:
	case TYPE_DURATION:
		return ARROW_SHAPE_NUMBER;
	case TYPE_BINARY:
	case TYPE_UTF8:
	case TYPE_LARGE_BINARY:
	case TYPE_LARGE_UTF8:
	case TYPE_FIXED_BINARY:
	case TYPE_BINARY_VIEW:
	case TYPE_UTF8_VIEW:
		return ARROW_SHAPE_BYTES;
	case TYPE_STRUCT:
		return ARROW_SHAPE_STRUCT;
	case TYPE_LIST:
	case TYPE_LARGE_LIST:
	case TYPE_LIST_VIEW:
	case TYPE_LARGE_LIST_VIEW:
	case TYPE_FIXED_LIST:
	case TYPE_MAP:
		return ARROW_SHAPE_LIST;
	default:
		return ARROW_SHAPE_OTHER;
	}
}

enum arrow_shape arrow_shape(const struct arrow_array *array)
{
	return shape_of(array->field);
}

int64_t arrow_length(const struct arrow_array *array)
{
	return array->length;
}

/* The chunk that has the index. */
static const struct chunk *find_chunk(const struct dictionary *dictionary, int64_t index)
{
	size_t low = 0, high = dictionary->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (dictionary->chunks[middle].first <= index)
			low = middle;
		else
			high = middle;
	}
	return &dictionary->chunks[low];
}

static int64_t find_run(const struct arrow_array *ends, int64_t row)
{
	int64_t low = 0, high = ends->length - 1;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (number_at(ends->first, middle, ends->field->bytes) > row)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The array that has the row's value, and its row there; NULL when it is null. */
static const struct arrow_array *look(const struct arrow_array *array, int64_t *row)
{
	for (;;) {
		if (array->valid && !bit_at(array->valid, *row))
			return NULL;
		if (array->dictionary) {
			int64_t index = index_at(array, *row);
			const struct chunk *chunk;

			if (array->field->index_bytes < 8)
				index &= (1ll << (8 * array->field->index_bytes)) - 1;
			chunk = find_chunk(array->dictionary, index);
			*row = index - chunk->first;
			array = chunk->values;
		} else if (array->field->type == TYPE_RUN_END) {
			*row = find_run(array->children[0], *row);
			array = array->children[1];
		} else {
			return array->field->type == TYPE_NULL ? NULL : array;
		}
	}
}

bool arrow_is_null(const struct arrow_array *array, int64_t row)
{
	return !look(array, &row);
}

int64_t arrow_number(const struct arrow_array *array, int64_t row)
{
	int64_t number;

	array = look(array, &row);
	if (!array || shape_of(array->field) != ARROW_SHAPE_NUMBER)
		return 0;
	if (array->field->type == TYPE_BOOL)
		return bit_at((const uint8_t *)array->first.data, row);
	if (!array->field->is_signed)
		return (int64_t)load(array->first.data + (size_t)row * array->field->bytes,
				     array->field->bytes);
	number = number_at(array->first, row, array->field->bytes);
	return __builtin_mul_overflow(number, array->field->scale, &number) ? 0 : number;
}

static struct slice view_at(const struct arrow_array *array, int64_t row)
{
	const char *view = array->first.data + (size_t)row * VIEW_BYTES;
	size_t len = (size_t)load(view, 4);

	if (len <= VIEW_INLINE_BYTES)
		return slice_from(view + 4, len);
	return slice_from(array->more[load(view + 8, 4)].data + load(view + 12, 4), len);
}

struct slice arrow_bytes(const struct arrow_array *array, int64_t row)
{
	int64_t begun;

	array = look(array, &row);
	if (!array || shape_of(array->field) != ARROW_SHAPE_BYTES)
		return (struct slice){ "", 0 };
	if (array->field->type == TYPE_BINARY_VIEW || array->field->type == TYPE_UTF8_VIEW)
		return view_at(array, row);
	if (array->field->type == TYPE_FIXED_BINARY)
		return slice_from(array->first.data + (size_t)row * array->field->bytes,
				  array->field->bytes);
	begun = number_at(array->first, row, array->field->bytes);
	return slice_from(array->second.data + begun,
			  (size_t)(number_at(array->first, row + 1, array->field->bytes) - begun));
}

const struct arrow_array *arrow_items(const struct arrow_array *array, int64_t row,
				      int64_t *ret_first, int64_t *ret_count)
{
	unsigned bytes;

	*ret_first = *ret_count = 0;
	array = look(array, &row);
	if (!array || shape_of(array->field) != ARROW_SHAPE_LIST)
		return NULL;
	bytes = array->field->bytes;
	if (array->field->type == TYPE_FIXED_LIST) {
		*ret_first = row * (int64_t)bytes;
		*ret_count = bytes;
		return array->children[0];
	}
	*ret_first = number_at(array->first, row, bytes);
	if (array->field->type == TYPE_LIST_VIEW || array->field->type == TYPE_LARGE_LIST_VIEW)
		*ret_count = number_at(array->second, row, bytes);
	else
		*ret_count = number_at(array->first, row + 1, bytes) - *ret_first;
	return array->children[0];
}

size_t arrow_fields(const struct arrow_array *array)
{
	const struct arrow_field *field = array->field;

	while (field->type == TYPE_RUN_END)
		field = &field->children[1];
	return field->type == TYPE_STRUCT ? field->children_count : 0;
}

struct slice arrow_field_name(const struct arrow_array *array, size_t number)
{
	const struct arrow_field *field = array->field;

	while (field->type == TYPE_RUN_END)
		field = &field->children[1];
	return field->children[number].name;
}

const struct arrow_array *arrow_struct(const struct arrow_array *array, int64_t row,
				       int64_t *ret_row)
{
	*ret_row = row;
	array = look(array, ret_row);
	return array && array->field->type == TYPE_STRUCT ? array : NULL;
}

const struct arrow_array *arrow_field(const struct arrow_array *of_struct, size_t field)
{
	return of_struct->children[field];
}
