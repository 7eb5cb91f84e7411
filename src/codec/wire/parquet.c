/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/parquet.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "codec/wire/column.h"
#include "codec/archive/compress.h"
#include "codec/wire/thrift.h"

#define MAGIC "PAR1"
#define ZSTD_LEVEL 3
#define DICTIONARY_TEXTS_MAX                                                                       \
	65536u /* of a column and group; beyond that, texts are written plain */
#define DICTIONARY_BYTES_MAX ((size_t)4 << 20)

/* The numbers of the format. */
enum { PHYSICAL_INT64 = 2, PHYSICAL_BYTES = 6 };
enum { REPETITION_REQUIRED, REPETITION_OPTIONAL, REPETITION_REPEATED };
enum { CONVERTED_UTF8 = 0, CONVERTED_LIST = 3, CONVERTED_UINT64 = 14 };
enum { LOGICAL_STRING = 1, LOGICAL_LIST = 3, LOGICAL_TIMESTAMP = 8, LOGICAL_INTEGER = 10 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DICTIONARY = 8 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { CODEC_ZSTD = 6, UNIT_NS = 3 };

struct place { /* in text_bytes */
	size_t offset, len;
};

/* What is collected of a column in the row group at hand. */
struct collected {
	COLUMN(int64_t) numbers;    /* or numbers of texts */
	COLUMN(uint8_t) levels;	    /* one per value or gap: 1 = a value is there */
	COLUMN(uint8_t) repeats;    /* of lists, likewise: 1 = goes on with the list before */
	COLUMN(struct place) texts; /* distinct */
	struct strbuf text_bytes;
	struct idmap text_map;
	uint32_t in_row; /* values of the row at hand */
};

/* Where a column chunk lies. */
struct chunk {
	uint64_t dictionary_at, data_at, end; /* dictionary_at 0: none */
	uint64_t values, raw_bytes;
};

struct group {
	struct chunk *chunks;
	uint64_t rows;
};

struct parquet {
	struct parquet_column *columns;
	size_t columns_count;
	struct collected *collected;
	parquet_sink_f *sink;
	void *sink_context;
	uint64_t offset, rows; /* rows: of the group at hand */
	size_t bytes;	       /* likewise */
	struct group *groups;
	size_t groups_count, groups_capacity;
	bool failed;
};

struct parquet *parquet_new(const struct parquet_column *columns, size_t count,
			    parquet_sink_f *sink, void *context)
{
	struct parquet *parquet = mem_new(struct parquet);

	parquet->columns = mem_new_array(struct parquet_column, count);
	for (size_t i = 0; i < count; i++)
		parquet->columns[i] = columns[i];
	parquet->columns_count = count;
	parquet->collected = mem_new_array(struct collected, count);
	parquet->sink = sink;
	parquet->sink_context = context;
	return parquet;
}

void parquet_free(struct parquet *parquet)
{
	if (!parquet)
		return;
	for (size_t i = 0; i < parquet->columns_count; i++) {
		struct collected *c = &parquet->collected[i];

		free(c->numbers.data);
		free(c->levels.data);
		free(c->repeats.data);
		free(c->texts.data);
		strbuf_free(&c->text_bytes);
		idmap_free(&c->text_map);
	}
	for (size_t i = 0; i < parquet->groups_count; i++)
		free(parquet->groups[i].chunks);
	free(parquet->groups);
	free(parquet->collected);
	free(parquet->columns);
	free(parquet);
}

#define ADD(column, value)                                                                         \
	do {                                                                                       \
		bool room_ = COLUMN_ROOM(column, 1, SIZE_MAX);                                     \
                                                                                                   \
		assert(room_);                                                                     \
		(column)->data[(column)->count++] = (value);                                       \
	} while (0)

void parquet_put(struct parquet *parquet, size_t column, int64_t value)
{
	struct collected *c = &parquet->collected[column];
	bool list = parquet->columns[column].shape == PARQUET_LIST;

	assert(list || !c->in_row);
	ADD(&c->numbers, value);
	if (parquet->columns[column].shape != PARQUET_REQUIRED)
		ADD(&c->levels, 1);
	if (list)
		ADD(&c->repeats, c->in_row != 0);
	c->in_row++;
	parquet->bytes += sizeof(value);
}

static struct slice text_at(const struct collected *c, uint32_t id)
{
	return slice_from(c->text_bytes.data + c->texts.data[id].offset, c->texts.data[id].len);
}

static bool text_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(text_at(context, id), *(const struct slice *)key);
}

void parquet_put_text(struct parquet *parquet, size_t column, struct slice value)
{
	struct collected *c = &parquet->collected[column];
	uint64_t hash = hash_bytes(value.data, value.len);
	uint32_t id = idmap_find(&c->text_map, hash, text_equal, c, &value);

	assert(parquet->columns[column].type == PARQUET_TEXT);
	if (id == IDMAP_NONE) {
		struct place place = { c->text_bytes.len, value.len };

		id = (uint32_t)c->texts.count;
		ADD(&c->texts, place);
		strbuf_add_slice(&c->text_bytes, value);
		idmap_add(&c->text_map, hash, id);
		parquet->bytes += value.len + sizeof(place);
	}
	parquet_put(parquet, column, id);
}

/*
 * Numbers of `width` bits as the format's hybrid of runs and packed groups of eight. Equal ones in
 * a row become a run; what is between runs is packed, a multiple of eight but at the end.
 */
struct hybrid {
	struct strbuf *out;
	unsigned width;
	const int64_t *numbers;
	const uint8_t *levels; /* instead */
};

static uint64_t number_at(const struct hybrid *hybrid, size_t i)
{
	return hybrid->numbers ? (uint64_t)hybrid->numbers[i] : hybrid->levels[i];
}

static void put_packed(const struct hybrid *hybrid, size_t first, size_t count)
{
	size_t groups = (count + 7) / 8;
	unsigned __int128 bits = 0;
	unsigned filled = 0;

	if (!count)
		return;
	strbuf_add_varint(hybrid->out, groups << 1 | 1);
	for (size_t i = 0; i < groups * 8; i++) {
		bits |= (unsigned __int128)(i < count ? number_at(hybrid, first + i) : 0) << filled;
		for (filled += hybrid->width; filled >= 8; filled -= 8, bits >>= 8)
			strbuf_add_byte(hybrid->out, (char)bits);
	}
	assert(!filled);
}

static void put_run(const struct hybrid *hybrid, uint64_t number, size_t count)
{
	strbuf_add_varint(hybrid->out, (uint64_t)count << 1);
	for (unsigned bit = 0; bit < hybrid->width; bit += 8)
		strbuf_add_byte(hybrid->out, (char)(number >> bit));
}

static void put_hybrid(const struct hybrid *hybrid, size_t count)
{
	size_t packed = 0, at = 0; /* numbers packed .. at are to be packed */

	while (at < count) {
		size_t run = 1, fill;

		while (at + run < count && number_at(hybrid, at + run) == number_at(hybrid, at))
			run++;
		fill = (8 - (at - packed) % 8) % 8;
		if (run < fill + 8) {
			at += run;
			continue;
		}
		put_packed(hybrid, packed, at + fill - packed);
		put_run(hybrid, number_at(hybrid, at), run - fill);
		at += run;
		packed = at;
	}
	put_packed(hybrid, packed, count - packed);
}

/* Levels of a page: their bytes' length, then the hybrid. All have one bit. */
static void put_levels(struct strbuf *out, const uint8_t *levels, size_t count)
{
	struct strbuf bytes = { 0 };
	struct hybrid hybrid = { .out = &bytes, .width = 1, .levels = levels };

	put_hybrid(&hybrid, count);
	strbuf_add_u32(out, (uint32_t)bytes.len);
	strbuf_add_slice(out, strbuf_slice(&bytes));
	strbuf_free(&bytes);
}

static int put_bytes(struct parquet *parquet, struct slice bytes, struct err *err)
{
	int rc = parquet->sink(parquet->sink_context, bytes, err);

	parquet->failed |= rc != 0;
	parquet->offset += bytes.len;
	return rc;
}

static int put_page(struct parquet *parquet, int type, struct slice raw, size_t values,
		    int encoding, struct chunk *chunk, struct err *err)
{
	struct strbuf packed = { 0 }, header = { 0 };
	struct thrift thrift = thrift_begin(&header);
	int rc;

	compress_zstd(raw, ZSTD_LEVEL, &packed);
	thrift_i32(&thrift, 1, type);
	thrift_i32(&thrift, 2, (int32_t)raw.len);
	thrift_i32(&thrift, 3, (int32_t)packed.len);
	thrift_struct(&thrift, type == PAGE_DATA ? 5 : 7);
	thrift_i32(&thrift, 1, (int32_t)values);
	thrift_i32(&thrift, 2, encoding);
	if (type == PAGE_DATA) {
		thrift_i32(&thrift, 3, ENCODING_RLE);
		thrift_i32(&thrift, 4, ENCODING_RLE);
	}
	thrift_end(&thrift);
	thrift_end(&thrift);
	chunk->raw_bytes += header.len + raw.len;
	rc = put_bytes(parquet, strbuf_slice(&header), err);
	if (!rc)
		rc = put_bytes(parquet, strbuf_slice(&packed), err);
	strbuf_free(&packed);
	strbuf_free(&header);
	return rc;
}

static void put_text(struct strbuf *out, struct slice text)
{
	strbuf_add_u32(out, (uint32_t)text.len);
	strbuf_add_slice(out, text);
}

static int put_dictionary(struct parquet *parquet, const struct collected *c, struct chunk *chunk,
			  struct err *err)
{
	struct strbuf raw = { 0 };
	int rc;

	for (uint32_t i = 0; i < c->texts.count; i++)
		put_text(&raw, text_at(c, i));
	chunk->dictionary_at = parquet->offset;
	rc = put_page(parquet, PAGE_DICTIONARY, strbuf_slice(&raw), c->texts.count, ENCODING_PLAIN,
		      chunk, err);
	strbuf_free(&raw);
	return rc;
}

static void put_values(const struct collected *c, bool dictionary, struct strbuf *out)
{
	unsigned width = 1;

	for (size_t i = 0; i < c->numbers.count && !dictionary; i++)
		strbuf_add_u64(out, (uint64_t)c->numbers.data[i]);
	if (!dictionary)
		return;
	while (c->texts.count > (size_t)1 << width)
		width++;
	strbuf_add_byte(out, (char)width);
	put_hybrid(&(struct hybrid){ .out = out, .width = width, .numbers = c->numbers.data },
		   c->numbers.count);
}

static int put_chunk(struct parquet *parquet, size_t column, struct chunk *chunk, struct err *err)
{
	const struct parquet_column *about = &parquet->columns[column];
	const struct collected *c = &parquet->collected[column];
	bool dictionary = c->texts.count != 0; /* else there are numbers, or nothing */
	struct strbuf raw = { 0 };
	int rc = dictionary ? put_dictionary(parquet, c, chunk, err) : 0;

	chunk->values = about->shape == PARQUET_REQUIRED ? c->numbers.count : c->levels.count;
	if (about->shape == PARQUET_LIST)
		put_levels(&raw, c->repeats.data, c->repeats.count);
	if (about->shape != PARQUET_REQUIRED)
		put_levels(&raw, c->levels.data, c->levels.count);
	put_values(c, dictionary, &raw);
	chunk->data_at = parquet->offset;
	if (!rc)
		rc = put_page(parquet, PAGE_DATA, strbuf_slice(&raw), chunk->values,
			      dictionary ? ENCODING_DICTIONARY : ENCODING_PLAIN, chunk, err);
	chunk->end = parquet->offset;
	strbuf_free(&raw);
	return rc;
}

static void forget(struct collected *c)
{
	c->numbers.count = c->levels.count = c->repeats.count = c->texts.count = 0;
	strbuf_clear(&c->text_bytes);
	idmap_clear(&c->text_map);
}

static int put_group(struct parquet *parquet, struct err *err)
{
	struct group group = { .rows = parquet->rows };
	int rc = 0;

	if (!parquet->offset)
		rc = put_bytes(parquet, slice_of(MAGIC), err);
	if (rc || !parquet->rows)
		return rc;
	group.chunks = mem_new_array(struct chunk, parquet->columns_count);
	for (size_t i = 0; !rc && i < parquet->columns_count; i++) {
		rc = put_chunk(parquet, i, &group.chunks[i], err);
		forget(&parquet->collected[i]);
	}
	mem_grow(parquet->groups, parquet->groups_count, parquet->groups_capacity);
	parquet->groups[parquet->groups_count++] = group;
	parquet->rows = 0;
	parquet->bytes = 0;
	return rc;
}

int parquet_end_row(struct parquet *parquet, struct err *err)
{
	if (parquet->failed)
		return err_set(err, ERR_IO, "the file could not be written");
	for (size_t i = 0; i < parquet->columns_count; i++) {
		struct collected *c = &parquet->collected[i];
		enum parquet_shape shape = parquet->columns[i].shape;

		assert(c->in_row || shape != PARQUET_REQUIRED);
		if (!c->in_row) {
			ADD(&c->levels, 0);
			if (shape == PARQUET_LIST)
				ADD(&c->repeats, 0);
		}
		c->in_row = 0;
	}
	if (++parquet->rows < PARQUET_ROWS && parquet->bytes < PARQUET_BYTES)
		return 0;
	return put_group(parquet, err);
}

static void put_element_name(struct thrift *thrift, struct slice name, int repetition)
{
	thrift_i32(thrift, 3, repetition);
	thrift_text(thrift, 4, name);
}

static void put_logical(struct thrift *thrift, enum parquet_type type)
{
	thrift_struct(thrift, 10);
	switch (type) {
	case PARQUET_TEXT:
		thrift_struct(thrift, LOGICAL_STRING);
		break;
	case PARQUET_TIMESTAMP_NS:
		thrift_struct(thrift, LOGICAL_TIMESTAMP);
		/* Said to be in UTC, some readers would keep microseconds alone. */
		thrift_bool(thrift, 1, false);
		thrift_struct(thrift, 2);
		thrift_struct(thrift, UNIT_NS);
		thrift_end(thrift);
		thrift_end(thrift);
		break;
	default:
		thrift_struct(thrift, LOGICAL_INTEGER);
		thrift_byte(thrift, 1, 64);
		thrift_bool(thrift, 2, type != PARQUET_UINT64);
	}
	thrift_end(thrift);
	thrift_end(thrift);
}

static void put_leaf(struct thrift *thrift, const struct parquet_column *column, struct slice name,
		     int repetition)
{
	bool text = column->type == PARQUET_TEXT;

	thrift_element(thrift);
	thrift_i32(thrift, 1, text ? PHYSICAL_BYTES : PHYSICAL_INT64);
	put_element_name(thrift, name, repetition);
	if (text || column->type == PARQUET_UINT64)
		thrift_i32(thrift, 6, text ? CONVERTED_UTF8 : CONVERTED_UINT64);
	put_logical(thrift, column->type);
	thrift_end(thrift);
}

/* A list is: required group NAME (LIST) { repeated group list { required TYPE element } }. */
static void put_list(struct thrift *thrift, const struct parquet_column *column)
{
	thrift_element(thrift);
	put_element_name(thrift, column->name, REPETITION_REQUIRED);
	thrift_i32(thrift, 5, 1);
	thrift_i32(thrift, 6, CONVERTED_LIST);
	thrift_struct(thrift, 10);
	thrift_struct(thrift, LOGICAL_LIST);
	thrift_end(thrift);
	thrift_end(thrift);
	thrift_end(thrift);
	thrift_element(thrift);
	put_element_name(thrift, SLICE_LITERAL("list"), REPETITION_REPEATED);
	thrift_i32(thrift, 5, 1);
	thrift_end(thrift);
	put_leaf(thrift, column, SLICE_LITERAL("element"), REPETITION_REQUIRED);
}

static void put_schema(const struct parquet *parquet, struct thrift *thrift)
{
	uint32_t elements = 1;

	for (size_t i = 0; i < parquet->columns_count; i++)
		elements += parquet->columns[i].shape == PARQUET_LIST ? 3 : 1;
	thrift_list(thrift, 2, THRIFT_STRUCT, elements);
	thrift_element(thrift);
	thrift_text(thrift, 4, SLICE_LITERAL("schema"));
	thrift_i32(thrift, 5, (int32_t)parquet->columns_count);
	thrift_end(thrift);
	for (size_t i = 0; i < parquet->columns_count; i++) {
		const struct parquet_column *column = &parquet->columns[i];

		if (column->shape == PARQUET_LIST)
			put_list(thrift, column);
		else
			put_leaf(thrift, column, column->name,
				 column->shape == PARQUET_OPTIONAL ? REPETITION_OPTIONAL
								   : REPETITION_REQUIRED);
	}
}

static void put_chunk_metadata(struct thrift *thrift, const struct parquet_column *column,
			       const struct chunk *chunk)
{
	uint64_t first = chunk->dictionary_at ? chunk->dictionary_at : chunk->data_at;
	bool list = column->shape == PARQUET_LIST;

	thrift_element(thrift);
	thrift_i64(thrift, 2, (int64_t)first);
	thrift_struct(thrift, 3);
	thrift_i32(thrift, 1, column->type == PARQUET_TEXT ? PHYSICAL_BYTES : PHYSICAL_INT64);
	thrift_list(thrift, 2, THRIFT_I32, chunk->dictionary_at ? 3 : 2);
	thrift_element_i32(thrift, ENCODING_PLAIN);
	thrift_element_i32(thrift, ENCODING_RLE);
	if (chunk->dictionary_at)
		thrift_element_i32(thrift, ENCODING_DICTIONARY);
	thrift_list(thrift, 3, THRIFT_BINARY, list ? 3 : 1);
	thrift_element_text(thrift, column->name);
	if (list) {
		thrift_element_text(thrift, SLICE_LITERAL("list"));
		thrift_element_text(thrift, SLICE_LITERAL("element"));
	}
	thrift_i32(thrift, 4, CODEC_ZSTD);
	thrift_i64(thrift, 5, (int64_t)chunk->values);
	thrift_i64(thrift, 6, (int64_t)chunk->raw_bytes);
	thrift_i64(thrift, 7, (int64_t)(chunk->end - first));
	thrift_i64(thrift, 9, (int64_t)chunk->data_at);
	if (chunk->dictionary_at)
		thrift_i64(thrift, 11, (int64_t)chunk->dictionary_at);
	thrift_end(thrift);
	thrift_end(thrift);
}

static void put_groups(const struct parquet *parquet, struct thrift *thrift)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < parquet->groups_count; i++)
		rows += parquet->groups[i].rows;
	thrift_i64(thrift, 3, (int64_t)rows);
	thrift_list(thrift, 4, THRIFT_STRUCT, (uint32_t)parquet->groups_count);
	for (size_t i = 0; i < parquet->groups_count; i++) {
		const struct group *group = &parquet->groups[i];
		uint64_t raw_bytes = 0;

		thrift_element(thrift);
		thrift_list(thrift, 1, THRIFT_STRUCT, (uint32_t)parquet->columns_count);
		for (size_t j = 0; j < parquet->columns_count; j++) {
			put_chunk_metadata(thrift, &parquet->columns[j], &group->chunks[j]);
			raw_bytes += group->chunks[j].raw_bytes;
		}
		thrift_i64(thrift, 2, (int64_t)raw_bytes);
		thrift_i64(thrift, 3, (int64_t)group->rows);
		thrift_end(thrift);
	}
}

int parquet_finish(struct parquet *parquet, struct err *err)
{
	struct strbuf footer = { 0 };
	struct thrift thrift = thrift_begin(&footer);
	int rc;

	if (parquet->failed)
		return err_set(err, ERR_IO, "the file could not be written");
	rc = put_group(parquet, err);
	thrift_i32(&thrift, 1, 2);
	put_schema(parquet, &thrift);
	put_groups(parquet, &thrift);
	thrift_text(&thrift, 6, SLICE_LITERAL("firn version " FIRN_VERSION));
	thrift_end(&thrift);
	strbuf_add_u32(&footer, (uint32_t)footer.len);
	strbuf_add_text(&footer, MAGIC);
	if (!rc)
		rc = put_bytes(parquet, strbuf_slice(&footer), err);
	strbuf_free(&footer);
	return rc;
}
