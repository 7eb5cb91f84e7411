/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/metadata.h"

#include "base/order/bisect.h"

#include <stdio.h>
#include <string.h>

#define SIGNATURE 0x424a5342u /* "BSJB" */
#define VERSION_BYTES_MAX 256u
#define STREAMS_MAX 16u
#define STREAM_NAME_MAX 32u
#define SEARCH_BYTES_MAX ((uint64_t)24 << 20)
#define ROWS_MAX (1u << 24)
#define NESTED_MAX 8

enum table { TABLE_TYPE_DEF = 2, TABLE_METHOD_PTR = 5, TABLE_METHOD_DEF = 6, TABLE_NESTED = 0x29 };

/*
 * Columns: 2 and 4 bytes; s, g, b: of a heap; t + number: a row of a table; lower letters of
 * `choices`: a row of one of some tables.
 */
struct column {
	char kind;
	uint8_t table;
};

#define HEAP_S                                                                                     \
	{                                                                                          \
		's', 0                                                                             \
	}
#define HEAP_G                                                                                     \
	{                                                                                          \
		'g', 0                                                                             \
	}
#define HEAP_B                                                                                     \
	{                                                                                          \
		'b', 0                                                                             \
	}
#define WORD_2                                                                                     \
	{                                                                                          \
		'2', 0                                                                             \
	}
#define WORD_4                                                                                     \
	{                                                                                          \
		'4', 0                                                                             \
	}
#define ROW(table)                                                                                 \
	{                                                                                          \
		't', table                                                                         \
	}
#define ONE_OF(choice)                                                                             \
	{                                                                                          \
		'c', choice                                                                        \
	}

enum choice {
	TYPE_DEF_OR_REF,
	HAS_CONSTANT,
	HAS_ATTRIBUTE,
	HAS_MARSHAL,
	HAS_SECURITY,
	MEMBER_PARENT,
	HAS_SEMANTICS,
	METHOD_DEF_OR_REF,
	MEMBER_FORWARDED,
	IMPLEMENTATION,
	ATTRIBUTE_TYPE,
	RESOLUTION_SCOPE,
	CHOICES
};

static const struct {
	uint8_t bits, count;
	uint8_t tables[22];
} choices[CHOICES] = {
	[TYPE_DEF_OR_REF] = { 2, 3, { 0x02, 0x01, 0x1b } },
	[HAS_CONSTANT] = { 2, 3, { 0x04, 0x08, 0x17 } },
	[HAS_ATTRIBUTE] = { 5, 22, { 0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00,
				     0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23,
				     0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b } },
	[HAS_MARSHAL] = { 1, 2, { 0x04, 0x08 } },
	[HAS_SECURITY] = { 2, 3, { 0x02, 0x06, 0x20 } },
	[MEMBER_PARENT] = { 3, 5, { 0x02, 0x01, 0x1a, 0x06, 0x1b } },
	[HAS_SEMANTICS] = { 1, 2, { 0x14, 0x17 } },
	[METHOD_DEF_OR_REF] = { 1, 2, { 0x06, 0x0a } },
	[MEMBER_FORWARDED] = { 1, 2, { 0x04, 0x06 } },
	[IMPLEMENTATION] = { 2, 3, { 0x26, 0x23, 0x27 } },
	[ATTRIBUTE_TYPE] = { 3, 2, { 0x06, 0x0a } },
	[RESOLUTION_SCOPE] = { 2, 4, { 0x00, 0x1a, 0x23, 0x01 } },
};

#define COLUMNS_MAX 9

static const struct column schema[TABLE_NESTED + 1][COLUMNS_MAX] = {
	[0x00] = { WORD_2, HEAP_S, HEAP_G, HEAP_G, HEAP_G },
	[0x01] = { ONE_OF(RESOLUTION_SCOPE), HEAP_S, HEAP_S },
	[0x02] = { WORD_4, HEAP_S, HEAP_S, ONE_OF(TYPE_DEF_OR_REF), ROW(0x04), ROW(0x06) },
	[0x03] = { ROW(0x04) },
	[0x04] = { WORD_2, HEAP_S, HEAP_B },
	[0x05] = { ROW(0x06) },
	[0x06] = { WORD_4, WORD_2, WORD_2, HEAP_S, HEAP_B, ROW(0x08) },
	[0x07] = { ROW(0x08) },
	[0x08] = { WORD_2, WORD_2, HEAP_S },
	[0x09] = { ROW(0x02), ONE_OF(TYPE_DEF_OR_REF) },
	[0x0a] = { ONE_OF(MEMBER_PARENT), HEAP_S, HEAP_B },
	[0x0b] = { WORD_2, ONE_OF(HAS_CONSTANT), HEAP_B },
	[0x0c] = { ONE_OF(HAS_ATTRIBUTE), ONE_OF(ATTRIBUTE_TYPE), HEAP_B },
	[0x0d] = { ONE_OF(HAS_MARSHAL), HEAP_B },
	[0x0e] = { WORD_2, ONE_OF(HAS_SECURITY), HEAP_B },
	[0x0f] = { WORD_2, WORD_4, ROW(0x02) },
	[0x10] = { WORD_4, ROW(0x04) },
	[0x11] = { HEAP_B },
	[0x12] = { ROW(0x02), ROW(0x14) },
	[0x13] = { ROW(0x14) },
	[0x14] = { WORD_2, HEAP_S, ONE_OF(TYPE_DEF_OR_REF) },
	[0x15] = { ROW(0x02), ROW(0x17) },
	[0x16] = { ROW(0x17) },
	[0x17] = { WORD_2, HEAP_S, HEAP_B },
	[0x18] = { WORD_2, ROW(0x06), ONE_OF(HAS_SEMANTICS) },
	[0x19] = { ROW(0x02), ONE_OF(METHOD_DEF_OR_REF), ONE_OF(METHOD_DEF_OR_REF) },
	[0x1a] = { HEAP_S },
	[0x1b] = { HEAP_B },
	[0x1c] = { WORD_2, ONE_OF(MEMBER_FORWARDED), HEAP_S, ROW(0x1a) },
	[0x1d] = { WORD_4, ROW(0x04) },
	[0x1e] = { WORD_4, WORD_4 },
	[0x1f] = { WORD_4 },
	[0x20] = { WORD_4, WORD_2, WORD_2, WORD_2, WORD_2, WORD_4, HEAP_B, HEAP_S, HEAP_S },
	[0x21] = { WORD_4 },
	[0x22] = { WORD_4, WORD_4, WORD_4 },
	[0x23] = { WORD_2, WORD_2, WORD_2, WORD_2, WORD_4, HEAP_B, HEAP_S, HEAP_S, HEAP_B },
	[0x24] = { WORD_4, ROW(0x23) },
	[0x25] = { WORD_4, WORD_4, WORD_4, ROW(0x23) },
	[0x26] = { WORD_4, HEAP_S, HEAP_B },
	[0x27] = { WORD_4, WORD_4, HEAP_S, HEAP_S, ONE_OF(IMPLEMENTATION) },
	[0x28] = { WORD_4, WORD_4, HEAP_S, ONE_OF(IMPLEMENTATION) },
	[0x29] = { ROW(0x02), ROW(0x02) },
};

static uint8_t choice_bytes(const struct metadata *metadata, uint8_t choice)
{
	for (size_t i = 0; i < choices[choice].count; i++)
		if (metadata->rows[choices[choice].tables[i]] >= 1u << (16 - choices[choice].bits))
			return 4;
	return 2;
}

static uint8_t column_bytes(const struct metadata *metadata, const struct column *column)
{
	switch (column->kind) {
	case '2':
		return 2;
	case '4':
		return 4;
	case 's':
		return metadata->wide_strings ? 4 : 2;
	case 'g':
		return metadata->wide_guids ? 4 : 2;
	case 'b':
		return metadata->wide_blobs ? 4 : 2;
	case 't':
		return metadata->rows[column->table] >= 1u << 16 ? 4 : 2;
	case 'c':
		return choice_bytes(metadata, column->table);
	default:
		return 0;
	}
}

/* Reads the header of the stream of tables, and finds where each one is. */
static bool open_tables(struct code_memory *memory, uint64_t at, struct metadata *ret)
{
	uint8_t heaps = code_memory_u8(memory, at + 6);
	uint64_t valid = code_memory_u64(memory, at + 8);

	ret->wide_strings = heaps & 1;
	ret->wide_guids = heaps & 2;
	ret->wide_blobs = heaps & 4;
	if (heaps & 0x40) /* extra data */
		return false;
	at += 24;
	for (int i = 0; i < METADATA_TABLES; i++) {
		if (!(valid >> i & 1))
			continue;
		ret->rows[i] = code_memory_u32(memory, at);
		if (ret->rows[i] >= ROWS_MAX)
			return false;
		at += 4;
	}
	for (int i = 0; i <= TABLE_NESTED; i++) {
		for (int k = 0; k < COLUMNS_MAX && schema[i][k].kind; k++)
			ret->row_bytes[i] =
				(uint8_t)(ret->row_bytes[i] + column_bytes(ret, &schema[i][k]));
		ret->tables[i] = at;
		at += (uint64_t)ret->rows[i] * ret->row_bytes[i];
	}
	return ret->rows[TABLE_METHOD_DEF] && ret->rows[TABLE_TYPE_DEF] &&
	       !ret->rows[TABLE_METHOD_PTR];
}

bool metadata_open(struct code_memory *memory, uint64_t address, struct metadata *ret)
{
	uint32_t version_bytes, streams;
	uint64_t at, tables = 0;

	*ret = (struct metadata){ 0 };
	if (code_memory_u32(memory, address) != SIGNATURE)
		return false;
	version_bytes = code_memory_u32(memory, address + 12);
	if (version_bytes > VERSION_BYTES_MAX)
		return false;
	at = address + 16 + version_bytes;
	streams = code_memory_u16(memory, at + 2);
	at += 4;
	for (uint32_t i = 0; i < streams && i < STREAMS_MAX; i++) {
		uint32_t offset = code_memory_u32(memory, at);
		uint32_t bytes = code_memory_u32(memory, at + 4);
		char name[CODE_TEXT_MAX];

		if (!code_memory_text(memory, at + 8, name) || strlen(name) >= STREAM_NAME_MAX)
			return false;
		at += 8 + (strlen(name) + 4) / 4 * 4;
		if (!strcmp(name, "#~"))
			tables = address + offset;
		if (!strcmp(name, "#Strings")) {
			ret->strings = address + offset;
			ret->strings_bytes = bytes;
		}
	}
	return tables && ret->strings && open_tables(memory, tables, ret);
}

bool metadata_find(struct code_memory *memory, uint64_t string, struct metadata *ret)
{
	uint64_t page = string - string % CODE_MEMORY_PAGE;
	uint8_t bytes[CODE_MEMORY_PAGE];

	for (uint64_t back = 0; back < SEARCH_BYTES_MAX && page > back; back += sizeof(bytes)) {
		if (!code_memory_read(memory, page - back, bytes, sizeof(bytes)))
			return false;
		for (size_t i = sizeof(bytes); i >= 4; i -= 4) {
			uint32_t word;

			memcpy(&word, bytes + i - 4, sizeof(word));
			if (word == SIGNATURE && metadata_open(memory, page - back + i - 4, ret) &&
			    string - ret->strings < ret->strings_bytes)
				return true;
		}
	}
	return false;
}

/* A column of a row (from 1) that begins `at` bytes into it. */
static uint32_t cell(struct code_memory *memory, const struct metadata *metadata, uint8_t table,
		     uint32_t row, int column)
{
	uint64_t at = metadata->tables[table] + (uint64_t)(row - 1) * metadata->row_bytes[table];

	for (int i = 0; i < column; i++)
		at += column_bytes(metadata, &schema[table][i]);
	return column_bytes(metadata, &schema[table][column]) == 4 ? code_memory_u32(memory, at)
								   : code_memory_u16(memory, at);
}

static bool string_at(struct code_memory *memory, const struct metadata *metadata, uint32_t offset,
		      char ret[CODE_TEXT_MAX])
{
	return offset < metadata->strings_bytes &&
	       code_memory_text(memory, metadata->strings + offset, ret);
}

/* The type that has the method: the last one whose methods begin at or before it. */
static uint32_t type_of_method(struct code_memory *memory, const struct metadata *metadata,
			       uint32_t method)
{
	return bisect(0, metadata->rows[TABLE_TYPE_DEF], i,
		      cell(memory, metadata, TABLE_TYPE_DEF, i + 1, 5) <= method);
}

/* The type that the type is nested in; 0 = none. */
static uint32_t type_around(struct code_memory *memory, const struct metadata *metadata,
			    uint32_t type)
{
	uint32_t low = bisect(0, metadata->rows[TABLE_NESTED], i,
			      cell(memory, metadata, TABLE_NESTED, i + 1, 0) < type);

	if (low == metadata->rows[TABLE_NESTED] ||
	    cell(memory, metadata, TABLE_NESTED, low + 1, 0) != type)
		return 0;
	return cell(memory, metadata, TABLE_NESTED, low + 1, 1);
}

/* Puts `text` and the separator before what is there. */
static bool put_before(char name[METADATA_NAME_MAX], const char *text, char separator)
{
	size_t len = strlen(text), have = strlen(name);

	if (len + 1 + have >= METADATA_NAME_MAX)
		return false;
	memmove(name + len + 1, name, have + 1);
	memcpy(name, text, len);
	name[len] = separator;
	return true;
}

bool metadata_method_name(struct code_memory *memory, const struct metadata *metadata,
			  uint32_t method, char ret[METADATA_NAME_MAX])
{
	char text[CODE_TEXT_MAX];
	uint32_t type, outer;

	if (!method || method > metadata->rows[TABLE_METHOD_DEF] ||
	    !string_at(memory, metadata, cell(memory, metadata, TABLE_METHOD_DEF, method, 3), text))
		return false;
	snprintf(ret, METADATA_NAME_MAX, "%s", text);
	type = type_of_method(memory, metadata, method);
	for (int i = 0; i < NESTED_MAX && type && type <= metadata->rows[TABLE_TYPE_DEF]; i++) {
		if (!string_at(memory, metadata, cell(memory, metadata, TABLE_TYPE_DEF, type, 1),
			       text) ||
		    !put_before(ret, text, i ? '+' : '.'))
			return false;
		outer = type_around(memory, metadata, type);
		if (!outer)
			return !string_at(memory, metadata,
					  cell(memory, metadata, TABLE_TYPE_DEF, type, 2), text) ||
			       put_before(ret, text, '.');
		type = outer;
	}
	return false;
}
