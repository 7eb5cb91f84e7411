/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_rows - values of ClickHouse's format RowBinary: a row is its columns one after the other,
 * without separators. Integers are little-endian; a text, or an array, begins with its length as
 * LEB128.
 *
 * Writing goes to a strbuf. Reading goes through byte_reader: lengths are not trusted, so an array
 * is never longer than the bytes that are left.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_ROWS_H
#define FIRN_SERVER_CLICKHOUSE_CH_ROWS_H

#include "base/mem.h"
#include "base/strbuf.h"
#include "server/persist/disk/byte_reader.h"

/* Room for `count` elements of a row; what was there is lost. */
static inline void *ch_scratch(void *memory, size_t count, size_t *capacity, size_t size)
{
	if (count <= *capacity)
		return memory;
	*capacity = count + count / 2;
	return mem_realloc(memory, *capacity, size);
}

static inline void ch_put_u8(struct strbuf *rows, uint8_t value)
{
	strbuf_add_byte(rows, (char)value);
}

static inline void ch_put_u16(struct strbuf *rows, uint16_t value)
{
	strbuf_add_byte(rows, (char)value);
	strbuf_add_byte(rows, (char)(value >> 8));
}

static inline void ch_put_text(struct strbuf *rows, struct slice text)
{
	strbuf_add_varint(rows, text.len);
	strbuf_add_slice(rows, text);
}

static inline struct slice ch_take_text(struct byte_reader *in)
{
	return byte_reader_bytes(in, byte_reader_varint(in));
}

/* How many elements of at least `element_bytes` each follow. */
static inline uint32_t ch_take_count(struct byte_reader *in, size_t element_bytes)
{
	uint64_t count = byte_reader_varint(in);

	if (count > byte_reader_left(in) / element_bytes || count > UINT32_MAX) {
		in->failed = true;
		return 0;
	}
	return (uint32_t)count;
}

#endif
