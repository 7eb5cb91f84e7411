/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/transcode.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/pb.h"

#define NUMBER_TEXT_BYTES 64

/* From JSON. */

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

/* The n-th character of the field's name in lowerCamelCase. */
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
	if (reading->field->kind == TRANSCODE_TEXT || reading->field->kind == TRANSCODE_BYTES)
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
			struct strbuf *out, struct err *err)
{
	json_error_t problem;
	json_t *root;
	int rc;

	if (!slice_trim(json).len)
		return 0;
	root = json_loadb(json.data, json.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
	if (!root)
		return err_set(err, ERR_INVALID, "%s: JSON at byte %d: %s", message->name,
			       problem.position, problem.text);
	if (json_is_object(root))
		rc = put_object(message, root, 0, out, err);
	else
		rc = err_set(err, ERR_INVALID, "%s: expected a JSON object", message->name);
	json_decref(root);
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

/* To JSON. */

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
