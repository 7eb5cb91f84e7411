/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/pb.h"

bool pb_varint_slow(struct pb_reader *reader, uint64_t *ret)
{
	const uint8_t *at = reader->at;
	uint64_t value = 0;

	if (at == reader->end)
		return false;
	if (reader->end - at >= PB_PLAIN_BYTES) {
		const uint8_t *behind = pb_plain_varint(at, ret);

		if (behind) {
			reader->at = behind;
			return true;
		}
	}
	for (uint32_t shift = 0; at < reader->end; shift += 7) {
		if (shift == 7 * PB_VARINT_BYTES_MAX)
			return pb_refuse(reader, "varint longer than 10 bytes");
		value |= (uint64_t)(*at & 0x7f) << shift;
		if (*at++ < 0x80) {
			reader->at = at;
			*ret = value;
			return true;
		}
	}
	return pb_refuse(reader, "truncated varint");
}

/* Cuts numbers off the low end of `word`; `stops` has the top bits of their last bytes. */
static inline uint64_t *cut_numbers(uint64_t word, uint64_t stops, uint64_t *next)
{
	while (stops) {
		int top = __builtin_ctzll(stops);

		*next++ = pb_join_groups(word & (stops ^ (stops - 1)));
		word = word >> top >> 1;
		stops = stops >> top >> 1;
	}
	return next;
}

/* The last `left` (1 to 7) of the bytes, as the low bytes of a word. */
static uint64_t load_tail(struct slice bytes, size_t left)
{
	const uint8_t *tail = (const uint8_t *)bytes.data + bytes.len - left;
	uint64_t word = 0;

	if (bytes.len >= sizeof(word)) {
		memcpy(&word, tail + left - sizeof(word), sizeof(word));
		return le64toh(word) >> (64 - 8 * left);
	}
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)tail[i] << (8 * i);
	return word;
}

/*
 * Lengths vary from number to number, so branching on them would be mispredicted. Eight bytes are
 * loaded at once, and arithmetic takes the numbers out of them.
 */
size_t pb_varints(struct slice bytes, uint64_t *to, bool *ret_whole)
{
	struct pb_reader in = pb_reader_of(bytes);
	uint64_t word, stops, *next = to;
	size_t left;

	while (in.end - in.at >= 8) {
		memcpy(&word, in.at, sizeof(word));
		word = le64toh(word);
		stops = ~word & PB_STOP_BITS;
		if (stops == PB_STOP_BITS) { /* small numbers have small neighbours */
			for (unsigned int i = 0; i < 8; i++)
				*next++ = word >> (8 * i) & 0xff;
			in.at += 8;
		} else if (stops) {
			in.at += 8 - (__builtin_clzll(stops) >> 3);
			next = cut_numbers(word, stops, next);
		} else if (pb_varint(&in, next)) { /* of 9 or 10 bytes */
			next++;
		} else {
			break;
		}
	}
	left = (size_t)(in.end - in.at);
	*ret_whole = !left;
	if (left && left < 8) {
		word = load_tail(bytes, left);
		stops = ~word & PB_STOP_BITS >> (64 - 8 * left);
		next = cut_numbers(word, stops, next);
		*ret_whole = stops >> (8 * left - 1);
	}
	return (size_t)(next - to);
}

size_t pb_numbers_count(const struct pb_field *field)
{
	size_t count = 0;

	if (field->wire != PB_BYTES)
		return 1;
	for (size_t i = 0; i < field->bytes.len; i++)
		count += (uint8_t)field->bytes.data[i] < 0x80;
	return count ? count : 1;
}

bool pb_fixed(struct pb_reader *reader, size_t bytes, uint64_t *ret)
{
	uint64_t value = 0;

	if ((size_t)(reader->end - reader->at) < bytes)
		return pb_refuse(reader, "truncated fixed-size number");
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)reader->at[i] << (8 * i);
	reader->at += bytes;
	*ret = value;
	return true;
}

bool pb_next_slow(struct pb_reader *reader, struct pb_field *ret)
{
	uint64_t tag, len;

	if (!pb_varint(reader, &tag))
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

int pb_fail(const struct pb_reader *reader, const char *message, struct err *err)
{
	return err_set(err, ERR_INVALID, "decode %s: %s in field %u at offset %zu", message,
		       reader->problem, reader->field, (size_t)(reader->at - reader->start));
}

int pb_fail_packed(const struct pb_reader *reader, const char *message, struct err *err)
{
	struct pb_reader bad = *reader;

	pb_refuse(&bad, "broken packed numbers");
	return pb_fail(&bad, message, err);
}

static void put_tag(struct strbuf *out, uint32_t field, enum pb_wire wire)
{
	strbuf_add_varint(out, ((uint64_t)field << 3) | wire);
}

void pb_put_varint_always(struct strbuf *out, uint32_t field, uint64_t value)
{
	put_tag(out, field, PB_VARINT);
	strbuf_add_varint(out, value);
}

void pb_put_varint(struct strbuf *out, uint32_t field, uint64_t value)
{
	if (value)
		pb_put_varint_always(out, field, value);
}

void pb_put_fixed64(struct strbuf *out, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	put_tag(out, field, PB_FIXED64);
	strbuf_add_u64(out, value);
}

void pb_put_double(struct strbuf *out, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pb_put_fixed64(out, field, bits);
}

void pb_put_float(struct strbuf *out, uint32_t field, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (!bits)
		return;
	put_tag(out, field, PB_FIXED32);
	for (int shift = 0; shift < 32; shift += 8)
		strbuf_add_byte(out, (char)(bits >> shift));
}

void pb_put_bytes_always(struct strbuf *out, uint32_t field, struct slice bytes)
{
	put_tag(out, field, PB_BYTES);
	strbuf_add_varint(out, bytes.len);
	strbuf_add_slice(out, bytes);
}

void pb_put_bytes(struct strbuf *out, uint32_t field, struct slice bytes)
{
	if (bytes.len)
		pb_put_bytes_always(out, field, bytes);
}

void pb_put_packed(struct strbuf *out, uint32_t field, const uint64_t *values, size_t count)
{
	size_t begun;

	if (!count)
		return;
	begun = pb_begin(out, field);
	for (size_t i = 0; i < count; i++)
		strbuf_add_varint(out, values[i]);
	pb_end(out, begun);
}

/* The length is not known yet: one byte is kept for it; pb_end moves the rest if it needs more. */
size_t pb_begin(struct strbuf *out, uint32_t field)
{
	put_tag(out, field, PB_BYTES);
	strbuf_add_byte(out, 0);
	return out->len;
}

void pb_end(struct strbuf *out, size_t begun)
{
	size_t len = out->len - begun;
	size_t more = 0;
	char *at;

	for (size_t rest = len >> 7; rest; rest >>= 7)
		more++;
	strbuf_reserve(out, more);
	at = out->data + begun - 1;
	if (more)
		memmove(at + 1 + more, at + 1, len);
	for (size_t rest = len; more; rest >>= 7, more--, out->len++)
		*at++ = (char)(rest | 0x80);
	*at = (char)(len >> (7 * (size_t)(at - (out->data + begun - 1))));
	out->data[out->len] = '\0';
}
