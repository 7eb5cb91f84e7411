/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb - the protobuf wire format (protobuf.dev/programming-guides/encoding): a bounded reader that
 * goes through a message field by field, and a writer that appends to a strbuf.
 *
 * Reading copies nothing: byte fields are slices into the input. A reader stops at the end of its
 * bytes or at the first byte it cannot accept; `problem` tells which. Offsets in messages count
 * from the outermost message, whose start nested readers carry along. Groups (wire types 3 and 4)
 * are refused: proto3 has none.
 *
 *     struct pb_reader in = pb_reader_of(bytes);
 *     struct pb_field field;
 *
 *     while (pb_next(&in, &field))
 *             ...field.number, field.wire, field.value or field.bytes...
 *     if (in.problem)
 *             return pb_fail(&in, "Profile", err);
 */
#ifndef FIRN_CODEC_WIRE_PB_H
#define FIRN_CODEC_WIRE_PB_H

#include <endian.h>
#include <string.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/strbuf.h"

#define PB_VARINT_BYTES_MAX 10
#define PB_STOP_BITS 0x8080808080808080ull /* clear in the last byte of a number */

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_reader {
	const uint8_t *at, *end;
	const uint8_t *start; /* of the outermost message */
	uint32_t field;	      /* number of the field read last, for messages; 0 = none yet */
	const char *problem;  /* NULL, or what is wrong at `at` */
};

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t value;	    /* PB_VARINT, PB_FIXED32, PB_FIXED64; 0 otherwise */
	struct slice bytes; /* PB_BYTES; empty otherwise */
};

static inline struct pb_reader pb_reader_of(struct slice bytes)
{
	const uint8_t *start = (const uint8_t *)(bytes.data ? bytes.data : "");

	return (struct pb_reader){ .at = start, .end = start + bytes.len, .start = start };
}

/* A reader of a message, or of packed numbers, held by a field that `outer` gave. */
static inline struct pb_reader pb_reader_into(const struct pb_reader *outer, struct slice bytes)
{
	struct pb_reader inner = pb_reader_of(bytes);

	inner.start = outer->start;
	inner.field = outer->field;
	return inner;
}

bool pb_varint_slow(struct pb_reader *reader, uint64_t *ret);

/* The next number of a packed field (and the base of everything else). False at the end too. */
static inline bool pb_varint(struct pb_reader *reader, uint64_t *ret)
{
	const uint8_t *at = reader->at;

	if (reader->end - at >= 2) {
		if (at[0] < 0x80) {
			*ret = at[0];
			reader->at = at + 1;
			return true;
		}
		if (at[1] < 0x80) {
			*ret = (at[0] & 0x7fu) | ((uint64_t)at[1] << 7);
			reader->at = at + 2;
			return true;
		}
	}
	return pb_varint_slow(reader, ret);
}

/* Drops the top bit of each byte: 7-bit groups of a varint, lowest first, joined to a number. */
static inline uint64_t pb_join_groups(uint64_t groups)
{
	groups &= 0x7f7f7f7f7f7f7f7full;
	groups = (groups & 0x007f007f007f007full) | ((groups & 0x7f007f007f007f00ull) >> 1);
	groups = (groups & 0x00003fff00003fffull) | ((groups & 0x3fff00003fff0000ull) >> 2);
	return (groups & 0x0fffffffull) | ((groups & 0x0fffffff00000000ull) >> 4);
}

/*
 * For the innermost loops of decoders, which keep their place in a register: the number at `at`,
 * and the place behind it. NULL when it is longer than 8 bytes. PB_PLAIN_BYTES can be read at `at`.
 */
#define PB_PLAIN_BYTES 8
static inline const uint8_t *pb_plain_varint(const uint8_t *at, uint64_t *ret)
{
	uint64_t word, stops;

	if (*at < 0x80) {
		*ret = *at;
		return at + 1;
	}
	memcpy(&word, at, sizeof(word));
	word = le64toh(word);
	stops = ~word & PB_STOP_BITS;
	if (!stops)
		return NULL;
	*ret = pb_join_groups(word & (stops ^ (stops - 1)));
	return at + (__builtin_ctzll(stops) >> 3) + 1;
}

/*
 * All numbers of a packed field, to `to`, which has room for them (pb_numbers_count); returns
 * how many. *ret_whole is false when the bytes end inside a number or one is too long.
 */
size_t pb_varints(struct slice bytes, uint64_t *to, bool *ret_whole);

/* How many numbers a field has, packed or not; 1 where it has none, so that there is room. */
size_t pb_numbers_count(const struct pb_field *field);

bool pb_fixed(struct pb_reader *reader, size_t bytes, uint64_t *ret); /* 4 or 8, little-endian */

/* Marks the bytes as wrong (the first problem stays); returns false. */
static inline bool pb_refuse(struct pb_reader *reader, const char *problem)
{
	if (!reader->problem)
		reader->problem = problem;
	return false;
}

bool pb_next_slow(struct pb_reader *reader, struct pb_field *ret);

/*
 * The next field. False at the end of the message or, with `problem` set, at bad bytes. Inline for
 * what nearly all fields are: a tag of one byte, then a number or length of one or two.
 */
static inline bool pb_next(struct pb_reader *reader, struct pb_field *ret)
{
	const uint8_t *at = reader->at, *end = reader->end;
	uint64_t number;
	uint32_t tag;

	if (end - at < 3)
		return at != end && pb_next_slow(reader, ret);
	tag = at[0];
	number = at[1];
	at += 2;
	if (number >= 0x80) {
		if (*at >= 0x80)
			return pb_next_slow(reader, ret);
		number = (number & 0x7f) | (uint64_t)*at++ << 7;
	}
	ret->number = tag >> 3;
	ret->wire = (enum pb_wire)(tag & 7);
	if (tag - 8 >= 0x78 || (ret->wire != PB_VARINT && ret->wire != PB_BYTES))
		return pb_next_slow(reader, ret);
	ret->value = 0;
	ret->bytes = slice_from(at, 0);
	if (ret->wire == PB_VARINT) {
		ret->value = number;
	} else {
		if (number > (uint64_t)(end - at))
			return pb_next_slow(reader, ret);
		ret->bytes.len = (size_t)number;
		at += number;
	}
	reader->field = ret->number;
	reader->at = at;
	return true;
}

/* What a message's fields may be on the wire: bit N stands for field N (1 .. 31). */
struct pb_shape {
	const char *name; /* of the message */
	uint32_t varints, bytes, fixed64s;
};
#define PB_TAG(field, wire) ((uint8_t)((field) << 3 | (wire))) /* of fields below 16 */
#define PB_BIT(field) (1u << (field))
#define PB_BITS(first, last) ((PB_BIT((last) - (first) + 1) - 1) << (first))

/* Like pb_next, but skips fields that the shape lacks and refuses a wrong wire type. */
static inline bool pb_next_known(struct pb_reader *reader, const struct pb_shape *shape,
				 struct pb_field *ret)
{
	while (pb_next(reader, ret)) {
		uint32_t bit = ret->number < 32 ? PB_BIT(ret->number) : 0;
		uint32_t fits = ret->wire == PB_VARINT	  ? shape->varints
				: ret->wire == PB_BYTES	  ? shape->bytes
				: ret->wire == PB_FIXED64 ? shape->fixed64s
							  : 0;

		if (fits & bit)
			return true;
		if ((shape->varints | shape->bytes | shape->fixed64s) & bit)
			return pb_refuse(reader, "unexpected wire type");
	}
	return false;
}

/* ERR_INVALID "MESSAGE: problem in field N at offset M"; for a reader that stopped at a problem. */
int pb_fail(const struct pb_reader *reader, const char *message, struct err *err);
/* The same for packed numbers that pb_varints found not whole, in the field read last. */
int pb_fail_packed(const struct pb_reader *reader, const char *message, struct err *err);

/* Writing. Proto3 style: zero and empty are not written, except by the pb_put_*_always forms. */
void pb_put_varint(struct strbuf *out, uint32_t field, uint64_t value);
void pb_put_varint_always(struct strbuf *out, uint32_t field, uint64_t value);
void pb_put_fixed64(struct strbuf *out, uint32_t field, uint64_t value);
void pb_put_double(struct strbuf *out, uint32_t field, double value);
void pb_put_float(struct strbuf *out, uint32_t field, float value);
void pb_put_bytes(struct strbuf *out, uint32_t field, struct slice bytes);
void pb_put_bytes_always(struct strbuf *out, uint32_t field, struct slice bytes);
void pb_put_packed(struct strbuf *out, uint32_t field, const uint64_t *values, size_t count);

/* A nested message, or packed numbers (strbuf_add_varint). pb_end takes what pb_begin gave. */
size_t pb_begin(struct strbuf *out, uint32_t field);
void pb_end(struct strbuf *out, size_t begun);

#endif
