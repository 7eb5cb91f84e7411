/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/transcode.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "codec/wire/base64.h"
#include "codec/wire/json_read.h"
#include "codec/wire/pb.h"

#define NUMBER_TEXT_BYTES 64

struct reading {
	const struct transcode_message *message;
	const struct transcode_field *field;
	unsigned depth;
	struct err *err;
};

static int unexpected(const struct reading *reading, const char *expected)
{
	return err_set(reading->err, ERR_INVALID, "%s.%s: expected %s", reading->message->name,
		       reading->field->name, expected);
}

/* By its name as it stands in the table, or in lowerCamelCase. */
static bool is_called(const struct transcode_field *field, struct slice name)
{
	const char *at = field->name;
	size_t i;

	if (slice_is(name, field->name))
		return true;
	for (i = 0; i < name.len && *at; i++, at++) {
		char c = *at;

		if (c == '_' && at[1] >= 'a' && at[1] <= 'z')
			c = (char)(*++at - 'a' + 'A');
		if (name.data[i] != c)
			return false;
	}
	return i == name.len && !*at;
}

static const struct transcode_field *find_field(const struct transcode_message *message,
						struct slice name)
{
	for (size_t i = 0; i < message->fields_count; i++)
		if (is_called(&message->fields[i], name))
			return &message->fields[i];
	return NULL;
}

static int parse_signed(const struct reading *reading, const char *text, int64_t low, int64_t high,
			uint64_t *ret)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < low || value > high)
		return unexpected(reading, "an integer in range");
	*ret = (uint64_t)value;
	return 0;
}

static int parse_unsigned(const struct reading *reading, const char *text, uint64_t high,
			  uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || *ret > high)
		return unexpected(reading, "an unsigned integer in range");
	return 0;
}

static int parse_integer(const struct reading *reading, const char *text, uint64_t *ret)
{
	switch (reading->field->kind) {
	case TRANSCODE_INT32:
		return parse_signed(reading, text, INT32_MIN, INT32_MAX, ret);
	case TRANSCODE_INT64:
		return parse_signed(reading, text, INT64_MIN, INT64_MAX, ret);
	case TRANSCODE_UINT32:
		return parse_unsigned(reading, text, UINT32_MAX, ret);
	default:
		return parse_unsigned(reading, text, UINT64_MAX, ret);
	}
}

static int parse_real(const struct reading *reading, const char *text, double *ret)
{
	char *end;

	if (!strcmp(text, "Infinity") || !strcmp(text, "-Infinity")) {
		*ret = text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
		return 0;
	}
	*ret = strtod(text, &end);
	if (end == text || *end)
		return unexpected(reading, "a number");
	return 0;
}

static int parse_enum(const struct reading *reading, const char *text, uint64_t *ret)
{
	const struct transcode_enum *names = reading->field->names;

	for (size_t i = 0; i < names->count; i++) {
		if (names->names[i] && !strcmp(names->names[i], text)) {
			*ret = i;
			return 0;
		}
	}
	if (text[0] < '0' || text[0] > '9')
		return unexpected(reading, "a name of the enumeration");
	return parse_unsigned(reading, text, INT32_MAX, ret);
}

/* "2026-01-02T15:04:05.25Z", with an offset or Z: seconds and nanoseconds. */
static int parse_timestamp(const struct reading *reading, const char *text, int64_t *ret_seconds,
			   uint32_t *ret_nanos)
{
	struct tm utc = { 0 };
	const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
	int sign, hours, minutes, used = 0;

	*ret_nanos = 0;
	if (!at)
		return unexpected(reading, "a time such as 2026-01-02T15:04:05Z");
	*ret_seconds = (int64_t)timegm(&utc);
	if (*at == '.') {
		uint32_t unit = 100000000;

		for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
			*ret_nanos += (uint32_t)(*at - '0') * unit;
	}
	if (!strcmp(at, "Z"))
		return 0;
	sign = *at == '+' ? 1 : *at == '-' ? -1 : 0;
	if (!sign || sscanf(at + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || at[1 + used])
		return unexpected(reading, "a time with Z or an offset");
	*ret_seconds -= sign * (hours * 3600ll + minutes * 60ll);
	return 0;
}

/* "1.5s" */
static int parse_duration(const struct reading *reading, const char *text, int64_t *ret_seconds,
			  int32_t *ret_nanos)
{
	bool negative = text[0] == '-';
	int32_t unit = 100000000;
	char *end;

	errno = 0;
	*ret_nanos = 0;
	*ret_seconds = strtoll(text, &end, 10);
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
			*ret_nanos += (*end - '0') * unit;
	if (errno || end == text || strcmp(end, "s") != 0)
		return unexpected(reading, "a duration such as \"1.5s\"");
	if (negative)
		*ret_nanos = -*ret_nanos;
	return 0;
}

static void put_seconds(struct strbuf *out, uint32_t number, int64_t seconds, int64_t nanos)
{
	size_t begun = pb_begin(out, number);

	pb_put_varint(out, 1, (uint64_t)seconds);
	pb_put_varint(out, 2, (uint64_t)nanos);
	pb_end(out, begun);
}

static int put_timestamp(const struct reading *reading, const char *text, struct strbuf *out)
{
	int64_t seconds = 0;
	uint32_t nanos;
	int rc = parse_timestamp(reading, text, &seconds, &nanos);

	if (!rc)
		put_seconds(out, reading->field->number, seconds, nanos);
	return rc;
}

static int put_duration(const struct reading *reading, const char *text, struct strbuf *out)
{
	int64_t seconds = 0;
	int32_t nanos;
	int rc = parse_duration(reading, text, &seconds, &nanos);

	if (!rc)
		put_seconds(out, reading->field->number, seconds, nanos);
	return rc;
}

static int put_base64(const struct reading *reading, struct slice text, struct strbuf *out)
{
	struct strbuf bytes = { 0 };
	bool ok = base64_decode(text, &bytes);

	if (ok)
		pb_put_bytes_always(out, reading->field->number, strbuf_slice(&bytes));
	strbuf_free(&bytes);
	return ok ? 0 : unexpected(reading, "base64");
}

static int put_hex(const struct reading *reading, struct slice text, struct strbuf *out)
{
	size_t begun = pb_begin(out, reading->field->number);
	bool ok = text.len % 2 == 0;

	for (size_t i = 0; i + 1 < text.len && ok; i += 2) {
		int high = slice_hex_digit(text.data[i]), low = slice_hex_digit(text.data[i + 1]);

		ok = high >= 0 && low >= 0;
		strbuf_add_byte(out, (char)(high << 4 | low));
	}
	pb_end(out, begun);
	return ok ? 0 : unexpected(reading, "pairs of hex digits");
}

static int put_fixed64(const struct reading *reading, const char *text, struct strbuf *out)
{
	uint64_t value = 0;
	int rc = parse_integer(reading, text, &value);

	if (!rc)
		pb_put_fixed64(out, reading->field->number, value);
	return rc;
}

static int put_real(const struct reading *reading, const char *text, struct strbuf *out)
{
	double real = 0;
	int rc = parse_real(reading, text, &real);

	if (!rc && reading->field->kind == TRANSCODE_FLOAT)
		pb_put_float(out, reading->field->number, (float)real);
	else if (!rc)
		pb_put_double(out, reading->field->number, real);
	return rc;
}

static int put_varint_form(const struct reading *reading, const char *text, struct strbuf *out)
{
	bool is_enum = reading->field->kind == TRANSCODE_ENUM;
	uint64_t value = 0;
	int rc = is_enum ? parse_enum(reading, text, &value) : parse_integer(reading, text, &value);

	if (!rc)
		pb_put_varint_always(out, reading->field->number, value);
	return rc;
}

/* A scalar, given as text in JSON or in a query string. */
static int put_text_form(const struct reading *reading, const char *text, size_t len,
			 struct strbuf *out)
{
	switch (reading->field->kind) {
	case TRANSCODE_TEXT:
		pb_put_bytes_always(out, reading->field->number, slice_from(text, len));
		return 0;
	case TRANSCODE_BYTES:
		return put_base64(reading, slice_from(text, len), out);
	case TRANSCODE_HEX:
		return put_hex(reading, slice_from(text, len), out);
	case TRANSCODE_FIXED64:
		return put_fixed64(reading, text, out);
	case TRANSCODE_FLOAT:
	case TRANSCODE_DOUBLE:
		return put_real(reading, text, out);
	case TRANSCODE_BOOL:
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			return unexpected(reading, "true or false");
		pb_put_varint_always(out, reading->field->number, text[0] == 't');
		return 0;
	case TRANSCODE_TIMESTAMP:
		return put_timestamp(reading, text, out);
	case TRANSCODE_DURATION:
		return put_duration(reading, text, out);
	case TRANSCODE_MESSAGE:
		return unexpected(reading, "an object");
	default:
		return put_varint_form(reading, text, out);
	}
}

static int put_object(const struct transcode_message *message, const json_t *object, unsigned depth,
		      struct strbuf *out, struct err *err);

static int put_message(const struct reading *reading, const json_t *value, struct strbuf *out)
{
	size_t begun = pb_begin(out, reading->field->number);
	int rc = put_object(reading->field->message, value, reading->depth + 1, out, reading->err);

	pb_end(out, begun);
	return rc;
}

static int put_value(const struct reading *reading, const json_t *value, struct strbuf *out)
{
	char text[NUMBER_TEXT_BYTES];
	double real;

	switch (json_typeof(value)) {
	case JSON_STRING:
		return put_text_form(reading, json_string_value(value), json_string_length(value),
				     out);
	case JSON_INTEGER:
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
		break;
	case JSON_REAL:
		real = json_real_value(value);
		if (real == floor(real) && fabs(real) < 0x1p53)
			snprintf(text, sizeof(text), "%.0f", real); /* 1e3 is an integer */
		else
			snprintf(text, sizeof(text), "%.17g", real);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		if (reading->field->kind != TRANSCODE_BOOL)
			return unexpected(reading, "no boolean");
		return put_text_form(reading, json_is_true(value) ? "true" : "false", 0, out);
	case JSON_OBJECT:
		if (reading->field->kind != TRANSCODE_MESSAGE)
			return unexpected(reading, "no object");
		return put_message(reading, value, out);
	default:
		return unexpected(reading, "no array");
	}
	if (reading->field->kind == TRANSCODE_TEXT || reading->field->kind == TRANSCODE_BYTES ||
	    reading->field->kind == TRANSCODE_HEX)
		return unexpected(reading, "a string");
	return put_text_form(reading, text, strlen(text), out);
}

static int put_field(const struct reading *reading, const json_t *value, struct strbuf *out)
{
	if (json_is_null(value))
		return 0;
	if (!reading->field->repeated)
		return put_value(reading, value, out);
	if (!json_is_array(value))
		return unexpected(reading, "an array");
	for (size_t i = 0; i < json_array_size(value); i++) {
		int rc = put_value(reading, json_array_get(value, i), out);

		if (rc)
			return rc;
	}
	return 0;
}

static int put_object(const struct transcode_message *message, const json_t *object, unsigned depth,
		      struct strbuf *out, struct err *err)
{
	const char *key;
	json_t *value;

	if (depth > TRANSCODE_DEPTH_MAX)
		return err_set(err, ERR_INVALID, "%s: nested too deeply", message->name);
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		struct reading reading = { message, find_field(message, slice_of(key)), depth,
					   err };
		int rc = reading.field ? put_field(&reading, value, out) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

int transcode_from_json(const struct transcode_message *message, struct slice json,
			struct budget *budget, struct strbuf *out, struct err *err)
{
	struct json_read read;
	int rc;

	if (!slice_trim(json).len)
		return 0;
	rc = json_read(json, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, message->name, budget, &read,
		       err);
	if (!rc && json_is_object(read.root))
		rc = put_object(message, read.root, 0, out, err);
	else if (!rc)
		rc = err_set(err, ERR_INVALID, "%s: expected a JSON object", message->name);
	json_read_free(&read);
	return rc;
}

static int put_parameter(const struct reading *reading, struct slice value, struct strbuf *out)
{
	char *text = mem_strndup(value.len ? value.data : "", value.len);
	int rc = put_text_form(reading, text, value.len, out);

	free(text);
	return rc;
}

static int put_parameters(const struct transcode_message *message,
			  const struct transcode_parameter *parameters, size_t count,
			  unsigned depth, struct strbuf *out, struct err *err);

/* All parameters that lead into the field, as one message. */
static int put_nested(const struct reading *reading, const struct transcode_parameter *parameters,
		      size_t count, struct strbuf *out)
{
	size_t begun = pb_begin(out, reading->field->number);
	int rc = put_parameters(reading->field->message, parameters, count, reading->depth + 1, out,
				reading->err);

	pb_end(out, begun);
	return rc;
}

/* What leads into or past this field goes to `deeper`, without its first name. */
static int put_field_parameters(const struct reading *reading,
				const struct transcode_parameter *parameters, size_t count,
				struct transcode_parameter *deeper, struct strbuf *out)
{
	size_t deeper_count = 0;

	for (size_t i = 0; i < count; i++) {
		struct slice rest, name = slice_cut(parameters[i].path, '.', &rest);
		int rc = 0;

		if (!is_called(reading->field, name))
			continue;
		if (reading->field->kind == TRANSCODE_MESSAGE && rest.len)
			deeper[deeper_count++] =
				(struct transcode_parameter){ rest, parameters[i].value };
		else if (rest.len)
			rc = unexpected(reading, "no field below it");
		else
			rc = put_parameter(reading, parameters[i].value, out);
		if (rc)
			return rc;
	}
	return deeper_count ? put_nested(reading, deeper, deeper_count, out) : 0;
}

static int put_parameters(const struct transcode_message *message,
			  const struct transcode_parameter *parameters, size_t count,
			  unsigned depth, struct strbuf *out, struct err *err)
{
	struct transcode_parameter *deeper = mem_new_array(struct transcode_parameter, count);
	int rc = 0;

	for (size_t i = 0; !rc && i < message->fields_count; i++) {
		struct reading reading = { message, &message->fields[i], depth, err };

		rc = put_field_parameters(&reading, parameters, count, deeper, out);
	}
	free(deeper);
	return rc;
}

int transcode_from_parameters(const struct transcode_message *message,
			      const struct transcode_parameter *parameters, size_t count,
			      struct strbuf *out, struct err *err)
{
	return count ? put_parameters(message, parameters, count, 0, out, err) : 0;
}
