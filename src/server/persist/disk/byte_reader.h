/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_reader - reads little-endian integers and LEB128 from untrusted bytes.
 *
 * The counterpart of strbuf_add_u32 and friends. Reading past the end, or a malformed number,
 * returns 0 and sets `failed`, which stays set: a decoder may check once after a run of reads.
 */
#ifndef FIRN_SERVER_PERSIST_DISK_BYTE_READER_H
#define FIRN_SERVER_PERSIST_DISK_BYTE_READER_H

#include <string.h>

#include "base/slice.h"

struct byte_reader {
	const unsigned char *at, *end;
	bool failed;
};

static inline struct byte_reader byte_reader_of(struct slice bytes)
{
	const unsigned char *at = (const unsigned char *)bytes.data;

	return (struct byte_reader){ at, bytes.len ? at + bytes.len : at, false };
}

static inline size_t byte_reader_left(const struct byte_reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

static inline struct slice byte_reader_bytes(struct byte_reader *reader, size_t len)
{
	struct slice bytes = { (const char *)reader->at, len };

	if (len > byte_reader_left(reader)) {
		reader->failed = true;
		return (struct slice){ "", 0 };
	}
	reader->at += len;
	return bytes;
}

static inline uint64_t byte_reader_fixed(struct byte_reader *reader, size_t len)
{
	struct slice bytes = byte_reader_bytes(reader, len);
	uint64_t value = 0;

	for (size_t i = bytes.len; i--;)
		value = (value << 8) | (unsigned char)bytes.data[i];
	return value;
}

static inline uint16_t byte_reader_u16(struct byte_reader *reader)
{
	return (uint16_t)byte_reader_fixed(reader, 2);
}

static inline uint32_t byte_reader_u32(struct byte_reader *reader)
{
	return (uint32_t)byte_reader_fixed(reader, 4);
}

static inline uint64_t byte_reader_u64(struct byte_reader *reader)
{
	return byte_reader_fixed(reader, 8);
}

static inline uint64_t byte_reader_varint(struct byte_reader *reader)
{
	uint64_t value = 0;

	/* One byte, most of the time. */
	if (__builtin_expect(reader->at < reader->end && *reader->at < 0x80, 1))
		return *reader->at++;
	for (unsigned int shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
		unsigned char byte = *reader->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	reader->failed = true;
	return 0;
}

static inline uint32_t byte_reader_varint32(struct byte_reader *reader)
{
	uint64_t value = byte_reader_varint(reader);

	if (value > UINT32_MAX) {
		reader->failed = true;
		return 0;
	}
	return (uint32_t)value;
}

/* The next eight bytes as they lie there, or all ones when there are not as many. */
static inline uint64_t byte_reader_peek(const struct byte_reader *reader)
{
	uint64_t word = UINT64_MAX;

	if (byte_reader_left(reader) >= sizeof(word))
		memcpy(&word, reader->at, sizeof(word));
	return word;
}

static inline int64_t byte_reader_zigzag(struct byte_reader *reader)
{
	uint64_t value = byte_reader_varint(reader);

	return (int64_t)((value >> 1) ^ (0 - (value & 1)));
}

#endif
