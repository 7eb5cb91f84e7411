/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/flatbuffer.h"

#include <assert.h>

#include "base/mem.h"

#define FIRST_BYTES 1024u

void flatbuffer_free(struct flatbuffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct flatbuffer){ 0 };
}

/* Room for `bytes` more at the front; returns where they go. */
static uint8_t *prepend(struct flatbuffer *buffer, size_t bytes)
{
	while (buffer->capacity - buffer->len < bytes) {
		size_t capacity = buffer->capacity ? 2 * buffer->capacity : FIRST_BYTES;
		uint8_t *larger = mem_calloc(capacity, 1);

		if (buffer->len)
			memcpy(larger + capacity - buffer->len,
			       buffer->bytes + buffer->capacity - buffer->len, buffer->len);
		free(buffer->bytes);
		buffer->bytes = larger;
		buffer->capacity = capacity;
	}
	buffer->len += bytes;
	return buffer->bytes + buffer->capacity - buffer->len;
}

/* Zeros, so that after `bytes` more the front is a multiple of `alignment` from the end. */
static void align(struct flatbuffer *buffer, size_t bytes, size_t alignment)
{
	size_t padding = (alignment - (buffer->len + bytes) % alignment) % alignment;

	if (padding)
		memset(prepend(buffer, padding), 0, padding);
}

static void put(struct flatbuffer *buffer, uint64_t value, size_t bytes)
{
	uint8_t *to;

	align(buffer, bytes, bytes);
	to = prepend(buffer, bytes);
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

/* An offset counts from where it stands to what it refers to. */
static void put_offset(struct flatbuffer *buffer, uint32_t position)
{
	align(buffer, 4, 4);
	put(buffer, buffer->len + 4 - position, 4);
}

uint32_t flatbuffer_text(struct flatbuffer *buffer, const char *text)
{
	size_t len = strlen(text);

	align(buffer, len + 1, 4);
	*prepend(buffer, 1) = 0;
	memcpy(prepend(buffer, len), text, len);
	put(buffer, len, 4);
	return (uint32_t)buffer->len;
}

uint32_t flatbuffer_positions(struct flatbuffer *buffer, const uint32_t *positions, size_t count)
{
	align(buffer, 4 * count, 4);
	for (size_t i = count; i-- > 0;)
		put_offset(buffer, positions[i]);
	put(buffer, count, 4);
	return (uint32_t)buffer->len;
}

uint32_t flatbuffer_structs(struct flatbuffer *buffer, const int64_t *numbers, size_t count,
			    size_t width)
{
	align(buffer, 8 * count * width, 8);
	for (size_t i = count * width; i-- > 0;)
		put(buffer, (uint64_t)numbers[i], 8);
	put(buffer, count, 4);
	return (uint32_t)buffer->len;
}

void flatbuffer_begin(struct flatbuffer *buffer)
{
	buffer->table_begun = buffer->len;
	buffer->fields_count = 0;
	memset(buffer->fields, 0, sizeof(buffer->fields));
}

static void set_field(struct flatbuffer *buffer, unsigned field)
{
	assert(field < FLATBUFFER_FIELDS_MAX);
	buffer->fields[field] = (uint32_t)buffer->len;
	if (field >= buffer->fields_count)
		buffer->fields_count = field + 1;
}

void flatbuffer_number(struct flatbuffer *buffer, unsigned field, uint64_t value, size_t bytes)
{
	put(buffer, value, bytes);
	set_field(buffer, field);
}

void flatbuffer_refer(struct flatbuffer *buffer, unsigned field, uint32_t position)
{
	put_offset(buffer, position);
	set_field(buffer, field);
}

/* Before the fields the distance to the vtable, which goes before that. */
uint32_t flatbuffer_end(struct flatbuffer *buffer)
{
	uint32_t table, vtable;
	uint8_t *to;

	put(buffer, 0, 4);
	table = (uint32_t)buffer->len;
	for (unsigned i = buffer->fields_count; i-- > 0;)
		put(buffer, buffer->fields[i] ? table - buffer->fields[i] : 0, 2);
	put(buffer, table - buffer->table_begun, 2);
	put(buffer, 4 + 2 * buffer->fields_count, 2);
	vtable = (uint32_t)buffer->len;
	to = buffer->bytes + buffer->capacity - table;
	for (size_t i = 0; i < 4; i++)
		to[i] = (uint8_t)((vtable - table) >> (8 * i));
	return table;
}

void flatbuffer_finish(struct flatbuffer *buffer, uint32_t root, struct strbuf *out)
{
	align(buffer, 4, 8);
	put_offset(buffer, root);
	strbuf_add(out, buffer->bytes + buffer->capacity - buffer->len, buffer->len);
	flatbuffer_free(buffer);
}
