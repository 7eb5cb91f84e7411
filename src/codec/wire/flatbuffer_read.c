/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/flatbuffer_read.h"

#define OFFSET_BYTES 4u
#define ENTRY_BYTES 2u
#define VTABLE_HEAD_BYTES 4u

static bool holds(struct slice buffer, size_t at, size_t bytes)
{
	return at <= buffer.len && buffer.len - at >= bytes;
}

/* Little-endian; what lies outside is 0. */
static uint64_t number_at(struct slice buffer, size_t at, size_t bytes)
{
	uint64_t value = 0;

	if (!holds(buffer, at, bytes))
		return 0;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)(uint8_t)buffer.data[at + i] << (8 * i);
	return value;
}

static struct flatbuffer_table table_at(struct slice buffer, size_t at)
{
	struct flatbuffer_table table = { .buffer = buffer };
	int64_t vtable;
	size_t bytes;

	if (!at || !holds(buffer, at, OFFSET_BYTES))
		return table;
	vtable = (int64_t)at - (int32_t)(uint32_t)number_at(buffer, at, OFFSET_BYTES);
	if (vtable < 0 || !holds(buffer, (size_t)vtable, VTABLE_HEAD_BYTES))
		return table;
	bytes = (size_t)number_at(buffer, (size_t)vtable, ENTRY_BYTES);
	if (bytes < VTABLE_HEAD_BYTES || !holds(buffer, (size_t)vtable, bytes))
		return table;
	table.at = at;
	table.vtable = (size_t)vtable + VTABLE_HEAD_BYTES;
	table.entries = (unsigned)((bytes - VTABLE_HEAD_BYTES) / ENTRY_BYTES);
	return table;
}

/* Where an offset at `at` leads; 0: nowhere. */
static size_t follow(struct slice buffer, size_t at)
{
	uint64_t offset = number_at(buffer, at, OFFSET_BYTES);

	return offset && holds(buffer, at + offset, OFFSET_BYTES) ? at + (size_t)offset : 0;
}

struct flatbuffer_table flatbuffer_root(struct slice buffer)
{
	return table_at(buffer, follow(buffer, 0));
}

/* Where the field's bytes are; 0: it is not there. */
static size_t field_at(const struct flatbuffer_table *table, unsigned field, size_t bytes)
{
	size_t offset, at;

	if (!table->at || field >= table->entries)
		return 0;
	offset = (size_t)number_at(table->buffer, table->vtable + (size_t)field * ENTRY_BYTES,
				   ENTRY_BYTES);
	at = table->at + offset;
	return offset && holds(table->buffer, at, bytes) ? at : 0;
}

uint64_t flatbuffer_read(const struct flatbuffer_table *table, unsigned field, size_t bytes,
			 uint64_t otherwise)
{
	size_t at = field_at(table, field, bytes);

	return at ? number_at(table->buffer, at, bytes) : otherwise;
}

static size_t referred(const struct flatbuffer_table *table, unsigned field)
{
	size_t at = field_at(table, field, OFFSET_BYTES);

	return at ? follow(table->buffer, at) : 0;
}

struct flatbuffer_table flatbuffer_child(const struct flatbuffer_table *table, unsigned field)
{
	return table_at(table->buffer, referred(table, field));
}

struct slice flatbuffer_vector(const struct flatbuffer_table *table, unsigned field, size_t width)
{
	size_t at = referred(table, field);
	uint64_t count = number_at(table->buffer, at, OFFSET_BYTES);

	if (!at || !holds(table->buffer, at + OFFSET_BYTES, (size_t)count * width))
		return (struct slice){ "", 0 };
	return slice_from(table->buffer.data + at + OFFSET_BYTES, (size_t)count * width);
}

struct slice flatbuffer_string(const struct flatbuffer_table *table, unsigned field)
{
	return flatbuffer_vector(table, field, 1);
}

size_t flatbuffer_tables(const struct flatbuffer_table *table, unsigned field)
{
	return flatbuffer_vector(table, field, OFFSET_BYTES).len / OFFSET_BYTES;
}

struct flatbuffer_table flatbuffer_table_at(const struct flatbuffer_table *table, unsigned field,
					    size_t index)
{
	size_t at = referred(table, field) + OFFSET_BYTES * (1 + index);

	return table_at(table->buffer, follow(table->buffer, at));
}
