/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - a streaming JSON writer. Reading JSON is jansson's work.
 *
 * The writer puts commas and colons itself. Strings are written as valid UTF-8 (bad bytes become
 * U+FFFD). Integers beyond 2^53 are written as they are; NaN and infinities as null.
 */
#ifndef FIRN_CODEC_WIRE_JSON_H
#define FIRN_CODEC_WIRE_JSON_H

#include "base/strbuf.h"

#define JSON_DEPTH_MAX 512

struct json {
	struct strbuf *out;
	uint32_t depth;
	bool first[JSON_DEPTH_MAX]; /* nothing written yet at this depth */
	bool after_key;
};

void json_begin(struct json *json, struct strbuf *out);
void json_open_object(struct json *json);
void json_close_object(struct json *json);
void json_open_array(struct json *json);
void json_close_array(struct json *json);
void json_put_key(struct json *json, const char *key);
void json_put_key_slice(struct json *json, struct slice key);
void json_put_string(struct json *json, struct slice text);
void json_put_text(struct json *json, const char *text);
void json_put_int(struct json *json, int64_t value);
void json_put_uint(struct json *json, uint64_t value);
void json_put_double(struct json *json, double value);
void json_put_bool(struct json *json, bool value);
void json_put_null(struct json *json);

/* A key with its value. */
void json_member_string(struct json *json, const char *key, struct slice text);
void json_member_text(struct json *json, const char *key, const char *text);
void json_member_int(struct json *json, const char *key, int64_t value);
void json_member_uint(struct json *json, const char *key, uint64_t value);

/* As json_member_int of each, in a third of the time. Keys are ASCII that needs no escapes. */
struct json_number {
	struct slice key;
	int64_t value;
};
void json_members_int(struct json *json, const struct json_number *members, size_t count);
void json_member_bool(struct json *json, const char *key, bool value);
void json_member_array(struct json *json, const char *key);  /* opens it */
void json_member_object(struct json *json, const char *key); /* likewise */

#endif
