/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/arrow.h"

#include <assert.h>

#include "base/mem.h"
#include "codec/wire/flatbuffer.h"

#define ALIGNMENT 8u
#define CONTINUATION UINT32_MAX
#define VERSION_V5 4
#define BUFFERS_PER_COLUMN_MAX 5u

/* Fields and values of format/Message.fbs and format/Schema.fbs. */
enum { MESSAGE_VERSION, MESSAGE_HEADER_TYPE, MESSAGE_HEADER, MESSAGE_BODY_LENGTH };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { SCHEMA_ENDIANNESS, SCHEMA_FIELDS, SCHEMA_METADATA };
enum { PAIR_KEY, PAIR_VALUE };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_TYPE_TYPE, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN };
enum { TYPE_INT = 2, TYPE_BINARY = 4, TYPE_UTF8 = 5, TYPE_BOOL = 6, TYPE_LIST = 12 };
enum { NUMBER_WIDTH, NUMBER_SIGNED };
enum { DICTIONARY_ID, DICTIONARY_INDEX_TYPE };
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS };
enum { DICTIONARY_BATCH_ID, DICTIONARY_BATCH_DATA };

struct width {
	unsigned bits;
	bool is_signed;
};

static struct width width_of(enum arrow_type type)
{
	static const struct width widths[] = {
		[ARROW_UINT8] = { 8, false },	     [ARROW_UINT16] = { 16, false },
		[ARROW_UINT32] = { 32, false },	     [ARROW_UINT64] = { 64, false },
		[ARROW_INT8] = { 8, true },	     [ARROW_INT16] = { 16, true },
		[ARROW_INT32] = { 32, true },	     [ARROW_INT64] = { 64, true },
		[ARROW_TEXT_DICT] = { 32, true },    [ARROW_BINARY_DICT] = { 32, true },
		[ARROW_UINT32_LIST] = { 32, false }, [ARROW_INT64_LIST] = { 64, true },
	};

	return widths[type];
}

static bool is_dictionary(const struct arrow_column *column)
{
	return column->type == ARROW_TEXT_DICT || column->type == ARROW_BINARY_DICT;
}

static bool is_list(const struct arrow_column *column)
{
	return column->type == ARROW_UINT32_LIST || column->type == ARROW_INT64_LIST;
}

/* Body: buffers one behind the other, each padded. */

struct body {
	struct strbuf bytes;
	int64_t *nodes;	  /* (length, nulls) */
	int64_t *buffers; /* (offset, length) */
	size_t nodes_count, buffers_count;
};

static void pad(struct strbuf *out)
{
	while (out->len % ALIGNMENT)
		strbuf_add_byte(out, 0);
}

static void body_begin(struct body *body, size_t columns)
{
	*body = (struct body){ 0 };
	body->nodes = mem_new_array(int64_t, 4 * columns + 2);
	body->buffers = mem_new_array(int64_t, 2 * BUFFERS_PER_COLUMN_MAX * columns + 2);
}

static void body_free(struct body *body)
{
	strbuf_free(&body->bytes);
	free(body->nodes);
	free(body->buffers);
}

static void add_node(struct body *body, size_t length, size_t nulls)
{
	body->nodes[2 * body->nodes_count] = (int64_t)length;
	body->nodes[2 * body->nodes_count++ + 1] = (int64_t)nulls;
}

static void end_buffer(struct body *body, size_t begun)
{
	body->buffers[2 * body->buffers_count] = (int64_t)begun;
	body->buffers[2 * body->buffers_count++ + 1] = (int64_t)(body->bytes.len - begun);
	pad(&body->bytes);
}

static void add_buffer(struct body *body, const void *bytes, size_t len)
{
	size_t begun = body->bytes.len;

	strbuf_add(&body->bytes, bytes, len);
	end_buffer(body, begun);
}

static void add_bits(struct body *body, const uint8_t *flags, size_t count)
{
	size_t begun = body->bytes.len;

	for (size_t i = 0; i < count; i += 8) {
		uint8_t byte = 0;

		for (size_t k = 0; k < 8 && i + k < count; k++)
			byte |= (uint8_t)((flags[i + k] != 0) << k);
		strbuf_add_byte(&body->bytes, (char)byte);
	}
	end_buffer(body, begun);
}

static size_t count_nulls(const uint8_t *valid, size_t rows)
{
	size_t nulls = 0;

	for (size_t i = 0; valid && i < rows; i++)
		nulls += !valid[i];
	return nulls;
}

/* The node and its validity bitmap, which is empty when nothing is null. */
static void add_head(struct body *body, const uint8_t *valid, size_t rows)
{
	size_t nulls = count_nulls(valid, rows);

	add_node(body, rows, nulls);
	if (nulls)
		add_bits(body, valid, rows);
	else
		add_buffer(body, "", 0);
}

static void add_texts(struct body *body, const struct slice *texts, size_t count)
{
	size_t begun = body->bytes.len;
	uint32_t end = 0;

	strbuf_add_u32(&body->bytes, 0);
	for (size_t i = 0; i < count; i++) {
		end += (uint32_t)texts[i].len;
		strbuf_add_u32(&body->bytes, end);
	}
	end_buffer(body, begun);
	begun = body->bytes.len;
	for (size_t i = 0; i < count; i++)
		strbuf_add_slice(&body->bytes, texts[i]);
	end_buffer(body, begun);
}

static void add_list(struct body *body, const struct arrow_column *column, size_t rows)
{
	size_t items = (size_t)column->offsets[rows];

	add_buffer(body, column->offsets, (rows + 1) * sizeof(int32_t));
	add_node(body, items, 0);
	add_buffer(body, "", 0);
	add_buffer(body, column->items, items * width_of(column->type).bits / 8);
}

static void add_column(struct body *body, const struct arrow_column *column, size_t rows)
{
	add_head(body, column->valid, rows);
	if (column->type == ARROW_BOOL)
		add_bits(body, column->values, rows);
	else if (column->type == ARROW_TEXT || column->type == ARROW_BINARY)
		add_texts(body, column->texts, rows);
	else if (is_list(column))
		add_list(body, column, rows);
	else
		add_buffer(body, column->values, rows * width_of(column->type).bits / 8);
}

/* Heads. */

static uint32_t int_type(struct flatbuffer *buffer, struct width width)
{
	flatbuffer_begin(buffer);
	flatbuffer_number(buffer, NUMBER_WIDTH, width.bits, 4);
	flatbuffer_number(buffer, NUMBER_SIGNED, width.is_signed, 1);
	return flatbuffer_end(buffer);
}

static uint32_t empty_table(struct flatbuffer *buffer)
{
	flatbuffer_begin(buffer);
	return flatbuffer_end(buffer);
}

static unsigned type_number(enum arrow_type type)
{
	switch (type) {
	case ARROW_BOOL:
		return TYPE_BOOL;
	case ARROW_TEXT:
	case ARROW_TEXT_DICT:
		return TYPE_UTF8;
	case ARROW_BINARY:
	case ARROW_BINARY_DICT:
		return TYPE_BINARY;
	case ARROW_UINT32_LIST:
	case ARROW_INT64_LIST:
		return TYPE_LIST;
	default:
		return TYPE_INT;
	}
}

/* A list's items: a field of their own, called "item". */
static uint32_t item_field(struct flatbuffer *buffer, const struct arrow_column *column)
{
	uint32_t name = flatbuffer_text(buffer, "item");
	uint32_t type = int_type(buffer, width_of(column->type));
	uint32_t children = flatbuffer_positions(buffer, NULL, 0);

	flatbuffer_begin(buffer);
	flatbuffer_refer(buffer, FIELD_NAME, name);
	flatbuffer_refer(buffer, FIELD_TYPE, type);
	flatbuffer_refer(buffer, FIELD_CHILDREN, children);
	flatbuffer_number(buffer, FIELD_NULLABLE, 1, 1);
	flatbuffer_number(buffer, FIELD_TYPE_TYPE, TYPE_INT, 1);
	return flatbuffer_end(buffer);
}

static uint32_t dictionary_encoding(struct flatbuffer *buffer, size_t id)
{
	uint32_t index_type = int_type(buffer, (struct width){ 32, true });

	flatbuffer_begin(buffer);
	flatbuffer_number(buffer, DICTIONARY_ID, id, 8);
	flatbuffer_refer(buffer, DICTIONARY_INDEX_TYPE, index_type);
	return flatbuffer_end(buffer);
}

static uint32_t field(struct flatbuffer *buffer, const struct arrow_column *column, size_t id)
{
	unsigned number = type_number(column->type);
	uint32_t name = flatbuffer_text(buffer, column->name);
	uint32_t type =
		number == TYPE_INT ? int_type(buffer, width_of(column->type)) : empty_table(buffer);
	uint32_t dictionary = is_dictionary(column) ? dictionary_encoding(buffer, id) : 0;
	uint32_t item = is_list(column) ? item_field(buffer, column) : 0;
	uint32_t children = flatbuffer_positions(buffer, &item, item != 0);

	flatbuffer_begin(buffer);
	flatbuffer_refer(buffer, FIELD_NAME, name);
	flatbuffer_refer(buffer, FIELD_TYPE, type);
	if (dictionary)
		flatbuffer_refer(buffer, FIELD_DICTIONARY, dictionary);
	flatbuffer_refer(buffer, FIELD_CHILDREN, children);
	flatbuffer_number(buffer, FIELD_NULLABLE, column->valid != NULL, 1);
	flatbuffer_number(buffer, FIELD_TYPE_TYPE, number, 1);
	return flatbuffer_end(buffer);
}

static uint32_t batch(struct flatbuffer *buffer, const struct body *body, size_t rows)
{
	uint32_t nodes = flatbuffer_structs(buffer, body->nodes, body->nodes_count, 2);
	uint32_t buffers = flatbuffer_structs(buffer, body->buffers, body->buffers_count, 2);

	flatbuffer_begin(buffer);
	flatbuffer_number(buffer, BATCH_LENGTH, rows, 8);
	flatbuffer_refer(buffer, BATCH_NODES, nodes);
	flatbuffer_refer(buffer, BATCH_BUFFERS, buffers);
	return flatbuffer_end(buffer);
}

/* An encapsulated message: mark, length of the head, head, body. */
static void write_message(struct flatbuffer *buffer, unsigned type, uint32_t header,
			  struct slice body, struct strbuf *out)
{
	struct strbuf head = { 0 };
	uint32_t root;

	flatbuffer_begin(buffer);
	flatbuffer_number(buffer, MESSAGE_BODY_LENGTH, body.len, 8);
	flatbuffer_refer(buffer, MESSAGE_HEADER, header);
	flatbuffer_number(buffer, MESSAGE_VERSION, VERSION_V5, 2);
	flatbuffer_number(buffer, MESSAGE_HEADER_TYPE, type, 1);
	root = flatbuffer_end(buffer);
	flatbuffer_finish(buffer, root, &head);
	pad(&head);
	strbuf_add_u32(out, CONTINUATION);
	strbuf_add_u32(out, (uint32_t)head.len);
	strbuf_add_slice(out, strbuf_slice(&head));
	strbuf_add_slice(out, body);
	strbuf_free(&head);
}

static uint32_t metadata(struct flatbuffer *buffer, const char *key, const char *value)
{
	uint32_t key_at = flatbuffer_text(buffer, key), value_at = flatbuffer_text(buffer, value);
	uint32_t pair;

	flatbuffer_begin(buffer);
	flatbuffer_refer(buffer, PAIR_KEY, key_at);
	flatbuffer_refer(buffer, PAIR_VALUE, value_at);
	pair = flatbuffer_end(buffer);
	return flatbuffer_positions(buffer, &pair, 1);
}

static void write_schema(const struct arrow_column *columns, size_t count, const char *key,
			 const char *value, struct strbuf *out)
{
	uint32_t *fields = mem_new_array(uint32_t, count + 1);
	struct flatbuffer buffer = { 0 };
	uint32_t list, noted, schema;

	for (size_t i = 0; i < count; i++)
		fields[i] = field(&buffer, &columns[i], i);
	list = flatbuffer_positions(&buffer, fields, count);
	noted = key ? metadata(&buffer, key, value) : 0;
	flatbuffer_begin(&buffer);
	flatbuffer_refer(&buffer, SCHEMA_FIELDS, list);
	if (noted)
		flatbuffer_refer(&buffer, SCHEMA_METADATA, noted);
	flatbuffer_number(&buffer, SCHEMA_ENDIANNESS, 0, 2);
	schema = flatbuffer_end(&buffer);
	write_message(&buffer, HEADER_SCHEMA, schema, (struct slice){ 0 }, out);
	free(fields);
}

static void write_dictionary(const struct arrow_column *column, size_t id, struct strbuf *out)
{
	struct flatbuffer buffer = { 0 };
	uint32_t data, header;
	struct body body;

	body_begin(&body, 1);
	add_head(&body, NULL, column->texts_count);
	add_texts(&body, column->texts, column->texts_count);
	data = batch(&buffer, &body, column->texts_count);
	flatbuffer_begin(&buffer);
	flatbuffer_number(&buffer, DICTIONARY_BATCH_ID, id, 8);
	flatbuffer_refer(&buffer, DICTIONARY_BATCH_DATA, data);
	header = flatbuffer_end(&buffer);
	write_message(&buffer, HEADER_DICTIONARY, header, strbuf_slice(&body.bytes), out);
	body_free(&body);
}

static void write_batch(const struct arrow_column *columns, size_t count, size_t rows,
			struct strbuf *out)
{
	struct flatbuffer buffer = { 0 };
	struct body body;
	uint32_t header;

	body_begin(&body, count);
	for (size_t i = 0; i < count; i++)
		add_column(&body, &columns[i], rows);
	header = batch(&buffer, &body, rows);
	write_message(&buffer, HEADER_BATCH, header, strbuf_slice(&body.bytes), out);
	body_free(&body);
}

void arrow_write(const struct arrow_column *columns, size_t columns_count, size_t rows,
		 struct strbuf *out)
{
	arrow_write_noted(columns, columns_count, rows, NULL, NULL, out);
}

void arrow_write_noted(const struct arrow_column *columns, size_t columns_count, size_t rows,
		       const char *key, const char *value, struct strbuf *out)
{
	assert(rows <= ARROW_ROWS_MAX);
	write_schema(columns, columns_count, key, value, out);
	for (size_t i = 0; i < columns_count; i++)
		if (is_dictionary(&columns[i]))
			write_dictionary(&columns[i], i, out);
	write_batch(columns, columns_count, rows, out);
	strbuf_add_u32(out, CONTINUATION);
	strbuf_add_u32(out, 0);
}

static void store(void *to, size_t at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[at * bytes + i] = (uint8_t)(value >> (8 * i));
}

enum arrow_type arrow_narrow_unsigned(const uint64_t *values, size_t count, void *to)
{
	uint64_t all = 0;
	size_t bytes;

	for (size_t i = 0; i < count; i++)
		all |= values[i];
	bytes = all <= UINT8_MAX ? 1 : all <= UINT16_MAX ? 2 : all <= UINT32_MAX ? 4 : 8;
	for (size_t i = 0; i < count; i++)
		store(to, i, values[i], bytes);
	return bytes == 1   ? ARROW_UINT8
	       : bytes == 2 ? ARROW_UINT16
	       : bytes == 4 ? ARROW_UINT32
			    : ARROW_UINT64;
}

enum arrow_type arrow_narrow_signed(const int64_t *values, size_t count, void *to)
{
	int64_t low = 0, high = 0;
	size_t bytes;

	for (size_t i = 0; i < count; i++) {
		low = values[i] < low ? values[i] : low;
		high = values[i] > high ? values[i] : high;
	}
	bytes = low >= INT8_MIN && high <= INT8_MAX	? 1
		: low >= INT16_MIN && high <= INT16_MAX ? 2
		: low >= INT32_MIN && high <= INT32_MAX ? 4
							: 8;
	for (size_t i = 0; i < count; i++)
		store(to, i, (uint64_t)values[i], bytes);
	return bytes == 1   ? ARROW_INT8
	       : bytes == 2 ? ARROW_INT16
	       : bytes == 4 ? ARROW_INT32
			    : ARROW_INT64;
}
