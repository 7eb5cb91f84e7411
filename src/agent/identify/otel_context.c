/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/otel_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/wire/pb.h"

#define SIGNATURE "OTEL_CTX"
#define VERSION 2
#define VARIABLES_MAX 128

enum { CONTEXT_RESOURCE = 1, CONTEXT_ATTRIBUTES = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { PAIR_KEY = 1, PAIR_VALUE = 2 };
enum { VALUE_TEXT = 1, VALUE_BOOL = 2, VALUE_INT = 3, VALUE_DOUBLE = 4 };

static bool parse_hex(struct slice text, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < text.len; i++) {
		int digit = slice_hex_digit(text.data[i]);

		if (digit < 0 || i >= 16)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*ret = value;
	return text.len > 0;
}

bool otel_context_is_mapping(struct slice line, uint64_t *ret_start)
{
	static const char *const names[] = { "/memfd:" SIGNATURE " (deleted)", "/memfd:" SIGNATURE,
					     "[anon_shmem:" SIGNATURE "]", "[anon:" SIGNATURE "]" };
	struct slice rest;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_ends_with(slice_trim(line), slice_of(names[i])))
			return parse_hex(slice_cut(line, '-', &rest), ret_start);
	return false;
}

bool otel_context_header_parse(const uint8_t bytes[static OTEL_CONTEXT_HEADER_BYTES],
			       struct otel_context_header *ret)
{
	uint32_t version;

	memcpy(&version, bytes + 8, sizeof(version));
	memcpy(&ret->bytes, bytes + 12, sizeof(ret->bytes));
	memcpy(&ret->published_ns, bytes + 16, sizeof(ret->published_ns));
	memcpy(&ret->address, bytes + 24, sizeof(ret->address));
	return !memcmp(bytes, SIGNATURE, 8) && version == VERSION && ret->published_ns &&
	       ret->bytes && ret->bytes <= OTEL_CONTEXT_BYTES_MAX;
}

/* An AnyValue as text; false for what is none. */
static bool read_value(struct pb_reader *in, struct strbuf *ret)
{
	struct pb_field field;
	bool found = false;

	while (pb_next(in, &field)) {
		double number;

		strbuf_clear(ret);
		found = true;
		if (field.number == VALUE_TEXT && field.wire == PB_BYTES) {
			strbuf_add_slice(ret, field.bytes);
		} else if (field.number == VALUE_BOOL && field.wire == PB_VARINT) {
			strbuf_add_text(ret, field.value ? "true" : "false");
		} else if (field.number == VALUE_INT && field.wire == PB_VARINT) {
			strbuf_addf(ret, "%" PRId64, (int64_t)field.value);
		} else if (field.number == VALUE_DOUBLE && field.wire == PB_FIXED64) {
			memcpy(&number, &field.value, sizeof(number));
			strbuf_addf(ret, "%.17g", number);
		} else {
			found = false;
		}
	}
	return found;
}

static int add_pair(struct pb_reader in, struct meta_labels *ret, struct err *err)
{
	struct strbuf value = { 0 };
	struct slice key = { 0 };
	struct pb_field field;
	bool has_value = false;

	while (!in.problem && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES)
			continue;
		if (field.number == PAIR_KEY)
			key = field.bytes;
		if (field.number == PAIR_VALUE) {
			struct pb_reader inner = pb_reader_into(&in, field.bytes);

			has_value = read_value(&inner, &value);
			in.problem = inner.problem;
		}
	}
	if (!in.problem && has_value)
		meta_labels_add_of(ret, OTEL_META, key, strbuf_slice(&value));
	strbuf_free(&value);
	return in.problem ? pb_fail(&in, "KeyValue", err) : 0;
}

/* The pairs in a message's field of this number. */
static int add_pairs(struct pb_reader in, uint32_t number, const char *message,
		     struct meta_labels *ret, struct err *err)
{
	struct pb_field field;
	int code = 0;

	while (!code && pb_next(&in, &field))
		if (field.number == number && field.wire == PB_BYTES)
			code = add_pair(pb_reader_into(&in, field.bytes), ret, err);
	if (!code && in.problem)
		code = pb_fail(&in, message, err);
	return code;
}

int otel_context_decode(struct slice payload, struct meta_labels *ret, struct err *err)
{
	struct pb_reader in = pb_reader_of(payload);
	struct pb_field field;
	int code = add_pairs(in, CONTEXT_ATTRIBUTES, "ProcessContext", ret, err);

	while (!code && pb_next(&in, &field))
		if (field.number == CONTEXT_RESOURCE && field.wire == PB_BYTES)
			code = add_pairs(pb_reader_into(&in, field.bytes), RESOURCE_ATTRIBUTES,
					 "Resource", ret, err);
	return code;
}

/* Text with %XX for bytes; what is no such escape stays. */
static void add_unescaped(struct strbuf *out, struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		int high = i + 2 < text.len ? slice_hex_digit(text.data[i + 1]) : -1;
		int low = i + 2 < text.len ? slice_hex_digit(text.data[i + 2]) : -1;

		if (text.data[i] == '%' && high >= 0 && low >= 0) {
			strbuf_add_byte(out, (char)(high << 4 | low));
			i += 2;
		} else {
			strbuf_add_byte(out, text.data[i]);
		}
	}
}

static void add_missing(struct meta_labels *ret, struct slice key, struct slice value)
{
	struct meta_labels one = { 0 };

	meta_labels_add_of(&one, OTEL_META, key, value);
	for (size_t i = 0; i < one.count; i++) {
		struct strbuf name = { 0 };

		strbuf_add_slice(&name, meta_labels_name(&one, i));
		if (!meta_labels_find(ret, strbuf_text(&name)).len)
			meta_labels_copy(ret, &one);
		strbuf_free(&name);
	}
	meta_labels_free(&one);
}

void otel_context_add_variable(struct slice text, struct meta_labels *ret)
{
	struct strbuf value = { 0 };

	for (int i = 0; text.len && i < VARIABLES_MAX; i++) {
		struct slice pair = slice_cut(text, ',', &text), rest;
		struct slice key = slice_trim(slice_cut(pair, '=', &rest));

		strbuf_clear(&value);
		add_unescaped(&value, slice_trim(rest));
		add_missing(ret, key, strbuf_slice(&value));
	}
	strbuf_free(&value);
}
