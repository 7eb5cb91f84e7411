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
#ifndef FIRN_CODEC_PB_H
#define FIRN_CODEC_PB_H

#include "base/err.h"
#include "base/slice.h"
#include "base/strbuf.h"

#define PB_VARINT_BYTES_MAX 10

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

/*
 * All numbers of a packed field, to `to`, which has room for as many as there are bytes; returns
 * how many. *ret_whole is false when the bytes end inside a number or one is too long.
 */
size_t pb_varints(struct slice bytes, uint64_t *to, bool *ret_whole);

bool pb_fixed(struct pb_reader *reader, size_t bytes, uint64_t *ret); /* 4 or 8, little-endian */

/* Marks the bytes as wrong (the first problem stays); returns false. */
static inline bool pb_refuse(struct pb_reader *reader, const char *problem)
{
	if (!reader->problem)
		reader->problem = problem;
	return false;
}

/* The next field. False at the end of the message or, with `problem` set, at bad bytes. */
static inline bool pb_next(struct pb_reader *reader, struct pb_field *ret)
{
	uint64_t tag, len;

	if (reader->at == reader->end || !pb_varint(reader, &tag))
		return false;
	if (tag < 8 || tag > UINT32_MAX)
		return pb_refuse(reader, "field number out of range");
	*ret = (struct pb_field){ .number = (uint32_t)tag >> 3, .wire = (enum pb_wire)(tag & 7) };
	reader->field = ret->number;
	switch (tag & 7) {
	case PB_VARINT:
		return pb_varint(reader, &ret->value) || pb_refuse(reader, "truncated varint");
	case PB_FIXED64:
		return pb_fixed(reader, 8, &ret->value);
	case PB_FIXED32:
		return pb_fixed(reader, 4, &ret->value);
	case PB_BYTES:
		if (!pb_varint(reader, &len))
			return pb_refuse(reader, "truncated length");
		if (len > (uint64_t)(reader->end - reader->at))
			return pb_refuse(reader, "length runs past the end of the message");
		ret->bytes = slice_from(reader->at, (size_t)len);
		reader->at += len;
		return true;
	default:
		return pb_refuse(reader, "unknown wire type");
	}
}

/* What a message's fields may be on the wire: bit N stands for field N (1 .. 31). */
struct pb_shape {
	const char *name; /* of the message */
	uint32_t varints, bytes, fixed64s;
};
#define PB_BIT(field) (1u << (field))
#define PB_BITS(first, last) ((PB_BIT((last) - (first) + 1) - 1) << (first))

/* As pb_next, but skips fields that the shape does not know and refuses a wrong wire type. */
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
