/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/json.h"

#include <assert.h>
#include <math.h>

#include "base/printable.h"
#include "codec/wire/decimal.h"
#include "codec/wire/utf8.h"

void json_begin(struct json *json, struct strbuf *out)
{
	json->out = out;
	json->depth = 0;
	json->first[0] = true;
	json->after_key = false;
}

/* What stands between the value before and the one that comes now. */
static void separate(struct json *json)
{
	if (json->after_key)
		json->after_key = false;
	else if (!json->first[json->depth])
		strbuf_add_byte(json->out, ',');
	json->first[json->depth] = false;
}

static void open_with(struct json *json, char bracket)
{
	separate(json);
	strbuf_add_byte(json->out, bracket);
	assert(json->depth + 1 < JSON_DEPTH_MAX);
	json->first[++json->depth] = true;
}

static void close_with(struct json *json, char bracket)
{
	assert(json->depth && !json->after_key);
	json->depth--;
	strbuf_add_byte(json->out, bracket);
}

void json_open_object(struct json *json)
{
	open_with(json, '{');
}

void json_close_object(struct json *json)
{
	close_with(json, '}');
}

void json_open_array(struct json *json)
{
	open_with(json, '[');
}

void json_close_array(struct json *json)
{
	close_with(json, ']');
}

static void add_escape(struct strbuf *out, unsigned char byte)
{
	static const char letters[] = "btn?fr"; /* 8 to 13; 11 has none */

	if (byte == '"' || byte == '\\')
		strbuf_add(out, (const char[]){ '\\', (char)byte }, 2);
	else if (byte >= 8 && byte <= 13 && byte != 11)
		strbuf_add(out, (const char[]){ '\\', letters[byte - 8] }, 2);
	else
		strbuf_addf(out, "\\u%04x", byte);
}

/* True if the byte may stand in a JSON string as it is. */
static bool plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\' && byte != 0x7f;
}

/* One beyond ASCII: as it is, unless a terminal would obey it. Returns its bytes. */
static size_t add_character(struct strbuf *out, struct slice text)
{
	uint32_t code;
	size_t len = printable_command(text, &code);

	if (len < 2) /* or no character at all */
		return utf8_add_repaired(out, text);
	strbuf_addf(out, "\\u%04x", code);
	return len;
}

/* The bytes from the beginning that stand as they are, copied. */
static size_t copy_plain(char *to, struct slice text)
{
	size_t len = 0;

	for (; len < text.len && plain((unsigned char)text.data[len]); len++)
		to[len] = text.data[len];
	return len;
}

static void add_quoted(struct strbuf *out, struct slice text)
{
	size_t at = 0;

	strbuf_add_byte(out, '"');
	for (;;) {
		struct slice rest = slice_tail(text, at);
		size_t run = copy_plain(strbuf_reserve(out, rest.len + 1), rest);

		out->len += run;
		at += run;
		if (at == text.len)
			break;
		if ((unsigned char)text.data[at] < 0x80)
			add_escape(out, (unsigned char)text.data[at++]);
		else
			at += add_character(out, slice_tail(text, at));
	}
	strbuf_add_byte(out, '"');
}

void json_put_key_slice(struct json *json, struct slice key)
{
	assert(!json->after_key);
	separate(json);
	add_quoted(json->out, key);
	strbuf_add_byte(json->out, ':');
	json->after_key = true;
}

void json_put_key(struct json *json, const char *key)
{
	json_put_key_slice(json, slice_of(key));
}

void json_put_string(struct json *json, struct slice text)
{
	separate(json);
	add_quoted(json->out, text);
}

void json_put_text(struct json *json, const char *text)
{
	json_put_string(json, slice_of(text));
}

/* What the caller writes there, at most DECIMAL_BYTES_MAX, takes its place after number_added. */
static char *number_room(struct json *json)
{
	separate(json);
	return strbuf_reserve(json->out, DECIMAL_BYTES_MAX);
}

static void number_added(struct json *json, size_t len)
{
	json->out->len += len;
	json->out->data[json->out->len] = '\0';
}

void json_put_int(struct json *json, int64_t value)
{
	number_added(json, decimal_put_int(number_room(json), value));
}

void json_put_uint(struct json *json, uint64_t value)
{
	number_added(json, decimal_put_uint(number_room(json), value));
}

void json_put_double(struct json *json, double value)
{
	if (isfinite(value))
		number_added(json, decimal_put_double(number_room(json), value));
	else
		json_put_null(json);
}

void json_put_bool(struct json *json, bool value)
{
	separate(json);
	strbuf_add_text(json->out, value ? "true" : "false");
}

void json_put_null(struct json *json)
{
	separate(json);
	strbuf_add_text(json->out, "null");
}

void json_member_string(struct json *json, const char *key, struct slice text)
{
	json_put_key(json, key);
	json_put_string(json, text);
}

void json_member_text(struct json *json, const char *key, const char *text)
{
	json_member_string(json, key, slice_of(text));
}

void json_member_int(struct json *json, const char *key, int64_t value)
{
	json_put_key(json, key);
	json_put_int(json, value);
}

void json_member_uint(struct json *json, const char *key, uint64_t value)
{
	json_put_key(json, key);
	json_put_uint(json, value);
}

void json_members_int(struct json *json, const struct json_number *members, size_t count)
{
	size_t most = 0;
	char *to, *at;

	assert(!json->after_key && count);
	for (size_t i = 0; i < count; i++)
		most += members[i].key.len + sizeof(",\"\":") + DECIMAL_BYTES_MAX;
	at = to = strbuf_reserve(json->out, most);
	for (size_t i = 0; i < count; i++) {
		struct slice key = members[i].key;

		if (!json->first[json->depth])
			*at++ = ',';
		json->first[json->depth] = false;
		*at++ = '"';
		memcpy(at, key.data, key.len);
		at += key.len;
		*at++ = '"';
		*at++ = ':';
		at += decimal_put_int(at, members[i].value);
	}
	number_added(json, (size_t)(at - to));
}

void json_member_bool(struct json *json, const char *key, bool value)
{
	json_put_key(json, key);
	json_put_bool(json, value);
}

void json_member_array(struct json *json, const char *key)
{
	json_put_key(json, key);
	json_open_array(json);
}

void json_member_object(struct json *json, const char *key)
{
	json_put_key(json, key);
	json_open_object(json);
}
