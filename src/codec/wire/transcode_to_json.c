/* SPDX-License-Identifier: Apache-2.0 */
/* The half of transcode that writes JSON; transcode.c reads it. */
#include "codec/wire/transcode.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "codec/wire/base64.h"
#include "codec/wire/json.h"
#include "codec/wire/pb.h"

#define NUMBER_TEXT_BYTES 64

struct writing {
	struct json json;
	bool defaults;
	struct err *err;
};

static void write_camel_key(struct json *json, const char *name)
{
	char key[NUMBER_TEXT_BYTES];
	size_t len = 0;

	for (const char *at = name; *at && len + 1 < sizeof(key); at++) {
		if (*at == '_' && at[1] >= 'a' && at[1] <= 'z')
			key[len++] = (char)(*++at - 'a' + 'A');
		else
			key[len++] = *at;
	}
	json_put_key_slice(json, slice_from(key, len));
}

/* Seconds and nanoseconds of a Timestamp or Duration. */
static int read_seconds(const struct pb_reader *outer, struct slice bytes, const char *name,
			int64_t *ret_seconds, int64_t *ret_nanos, struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	*ret_seconds = *ret_nanos = 0;
	while (pb_next(&in, &field)) {
		if (field.number == 1 && field.wire == PB_VARINT)
			*ret_seconds = (int64_t)field.value;
		if (field.number == 2 && field.wire == PB_VARINT)
			*ret_nanos = (int64_t)field.value;
	}
	return in.problem ? pb_fail(&in, name, err) : 0;
}

/* Seconds, then ".25", ".000000001", or nothing. */
static void add_fraction(struct strbuf *text, int64_t nanos)
{
	if (!nanos)
		return;
	strbuf_addf(text, ".%09lld", (long long)(nanos < 0 ? -nanos : nanos) % 1000000000);
	while (text->data[text->len - 1] == '0')
		text->len--;
}

static void write_timestamp(struct json *json, int64_t seconds, int64_t nanos)
{
	time_t at = (time_t)seconds;
	struct strbuf text = { 0 };
	struct tm utc = { 0 };

	if (gmtime_r(&at, &utc)) {
		strbuf_addf(&text, "%04lld-%02d-%02dT%02d:%02d:%02d", utc.tm_year + 1900ll,
			    utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
		add_fraction(&text, nanos);
		strbuf_add_byte(&text, 'Z');
		json_put_string(json, strbuf_slice(&text));
	} else {
		json_put_null(json);
	}
	strbuf_free(&text);
}

static void write_duration(struct json *json, int64_t seconds, int64_t nanos)
{
	struct strbuf text = { 0 };

	strbuf_addf(&text, "%s%lld", seconds == 0 && nanos < 0 ? "-" : "", (long long)seconds);
	add_fraction(&text, nanos);
	strbuf_add_byte(&text, 's');
	json_put_string(json, strbuf_slice(&text));
	strbuf_free(&text);
}

static void write_real(struct json *json, double real)
{
	if (isnan(real))
		json_put_text(json, "NaN");
	else if (isinf(real))
		json_put_text(json, real < 0 ? "-Infinity" : "Infinity");
	else
		json_put_double(json, real);
}

static void write_number(struct json *json, const struct transcode_field *field, uint64_t value)
{
	char text[NUMBER_TEXT_BYTES];
	double real;
	float small;
	uint32_t bits;

	switch (field->kind) {
	case TRANSCODE_INT32:
		json_put_int(json, (int32_t)value);
		return;
	case TRANSCODE_UINT32:
		json_put_uint(json, (uint32_t)value);
		return;
	case TRANSCODE_BOOL:
		json_put_bool(json, value != 0);
		return;
	case TRANSCODE_ENUM:
		if (value < field->names->count && field->names->names[value])
			json_put_text(json, field->names->names[value]);
		else
			json_put_int(json, (int32_t)value);
		return;
	case TRANSCODE_FLOAT:
		bits = (uint32_t)value;
		memcpy(&small, &bits, sizeof(small));
		write_real(json, (double)small);
		return;
	case TRANSCODE_DOUBLE:
		memcpy(&real, &value, sizeof(real));
		write_real(json, real);
		return;
	default:
		break;
	}
	if (field->kind == TRANSCODE_INT64)
		snprintf(text, sizeof(text), "%" PRId64, (int64_t)value);
	else
		snprintf(text, sizeof(text), "%" PRIu64, value);
	json_put_text(json, text);
}

static int write_message(struct writing *writing, const struct transcode_message *message,
			 const struct pb_reader *outer, struct slice bytes, unsigned depth);

/* A value that has a length on the wire. */
static int write_bytes(struct writing *writing, const struct transcode_field *field,
		       const struct pb_reader *outer, struct slice bytes, unsigned depth)
{
	struct strbuf text = { 0 };
	int64_t seconds, nanos;
	int rc = 0;

	switch (field->kind) {
	case TRANSCODE_TEXT:
		json_put_string(&writing->json, bytes);
		return 0;
	case TRANSCODE_BYTES:
		base64_encode(bytes, true, &text);
		json_put_string(&writing->json, strbuf_slice(&text));
		strbuf_free(&text);
		return 0;
	case TRANSCODE_MESSAGE:
		return write_message(writing, field->message, outer, bytes, depth + 1);
	default:
		rc = read_seconds(outer, bytes, field->name, &seconds, &nanos, writing->err);
		if (!rc && field->kind == TRANSCODE_TIMESTAMP)
			write_timestamp(&writing->json, seconds, nanos);
		else if (!rc)
			write_duration(&writing->json, seconds, nanos);
		return rc;
	}
}

static enum pb_wire wire_of(enum transcode_kind kind)
{
	switch (kind) {
	case TRANSCODE_FLOAT:
		return PB_FIXED32;
	case TRANSCODE_DOUBLE:
		return PB_FIXED64;
	case TRANSCODE_TEXT:
	case TRANSCODE_BYTES:
	case TRANSCODE_MESSAGE:
	case TRANSCODE_TIMESTAMP:
	case TRANSCODE_DURATION:
		return PB_BYTES;
	default:
		return PB_VARINT;
	}
}

static int write_packed(struct writing *writing, const struct transcode_field *field,
			const struct pb_reader *outer, struct slice bytes)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	enum pb_wire wire = wire_of(field->kind);
	uint64_t value;

	while (in.at < in.end && !in.problem) {
		bool whole = wire == PB_VARINT ? pb_varint(&in, &value)
					       : pb_fixed(&in, wire == PB_FIXED32 ? 4 : 8, &value);

		if (!whole)
			return pb_fail_packed(&in, field->name, writing->err);
		write_number(&writing->json, field, value);
	}
	return 0;
}

/* One occurrence of a field on the wire. */
static int write_occurrence(struct writing *writing, const struct transcode_field *field,
			    const struct pb_reader *in, const struct pb_field *found,
			    unsigned depth)
{
	if (found->wire != wire_of(field->kind))
		return write_packed(writing, field, in, found->bytes);
	if (found->wire == PB_BYTES)
		return write_bytes(writing, field, in, found->bytes, depth);
	write_number(&writing->json, field, found->value);
	return 0;
}

static bool fits(const struct transcode_field *field, const struct pb_field *found)
{
	return found->number == field->number && (found->wire == wire_of(field->kind) ||
						  (field->repeated && found->wire == PB_BYTES));
}

static int write_repeated(struct writing *writing, const struct transcode_field *field,
			  const struct pb_reader *from, unsigned depth)
{
	struct pb_reader in = *from;
	struct pb_field found;
	bool begun = writing->defaults;
	int rc = 0;

	if (begun) {
		write_camel_key(&writing->json, field->name);
		json_open_array(&writing->json);
	}
	while (!rc && pb_next(&in, &found)) {
		if (!fits(field, &found))
			continue;
		if (!begun) {
			write_camel_key(&writing->json, field->name);
			json_open_array(&writing->json);
			begun = true;
		}
		rc = write_occurrence(writing, field, &in, &found, depth);
	}
	if (begun && !rc)
		json_close_array(&writing->json);
	return rc;
}

static void write_default(struct writing *writing, const struct transcode_field *field)
{
	if (!writing->defaults || field->in_oneof)
		return;
	write_camel_key(&writing->json, field->name);
	switch (wire_of(field->kind)) {
	case PB_BYTES:
		if (field->kind == TRANSCODE_TEXT || field->kind == TRANSCODE_BYTES)
			json_put_text(&writing->json, "");
		else
			json_put_null(&writing->json);
		break;
	default:
		write_number(&writing->json, field, 0);
		break;
	}
}

/* The last occurrence counts. */
static int write_single(struct writing *writing, const struct transcode_field *field,
			const struct pb_reader *from, unsigned depth)
{
	struct pb_reader in = *from, at = *from;
	struct pb_field found, last = { 0 };
	bool is_there = false;

	while (pb_next(&in, &found)) {
		if (!fits(field, &found))
			continue;
		last = found;
		at = in;
		is_there = true;
	}
	if (!is_there) {
		write_default(writing, field);
		return 0;
	}
	write_camel_key(&writing->json, field->name);
	return write_occurrence(writing, field, &at, &last, depth);
}

static int check_whole(struct pb_reader in, const char *name, struct err *err)
{
	struct pb_field found;

	while (pb_next(&in, &found))
		;
	return in.problem ? pb_fail(&in, name, err) : 0;
}

static int write_message(struct writing *writing, const struct transcode_message *message,
			 const struct pb_reader *outer, struct slice bytes, unsigned depth)
{
	struct pb_reader in = outer ? pb_reader_into(outer, bytes) : pb_reader_of(bytes);
	int rc = check_whole(in, message->name, writing->err);

	if (!rc && depth > TRANSCODE_DEPTH_MAX)
		rc = err_set(writing->err, ERR_INVALID, "%s: nested too deeply", message->name);
	json_open_object(&writing->json);
	for (size_t i = 0; !rc && i < message->fields_count; i++) {
		const struct transcode_field *field = &message->fields[i];

		rc = field->repeated ? write_repeated(writing, field, &in, depth)
				     : write_single(writing, field, &in, depth);
	}
	if (!rc)
		json_close_object(&writing->json);
	return rc;
}

int transcode_to_json(const struct transcode_message *message, struct slice bytes, bool defaults,
		      struct strbuf *out, struct err *err)
{
	struct writing writing = { .defaults = defaults, .err = err };

	json_begin(&writing.json, out);
	return write_message(&writing, message, NULL, bytes, 0);
}
