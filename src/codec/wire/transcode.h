/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transcode - protobuf messages as JSON and back, by a table of their fields
 * (protobuf.dev/programming-guides/json).
 *
 * Handlers of calls read and write protobuf only; JSON clients (Connect, grpc-gateway) are
 * converted here both ways. JSON names are lowerCamelCase; snake_case is understood too. 64-bit
 * integers are strings, bytes base64, Timestamp RFC 3339, Duration "1.5s". Unknown fields are
 * passed over, in either direction. Pure functions, any thread. jansson reads the JSON.
 */
#ifndef FIRN_CODEC_WIRE_TRANSCODE_H
#define FIRN_CODEC_WIRE_TRANSCODE_H

#include "base/err.h"
#include "base/strbuf.h"

struct budget; /* base/budget.h */

#define TRANSCODE_DEPTH_MAX 250 /* messages in messages */

enum transcode_kind {
	TRANSCODE_INT32,
	TRANSCODE_UINT32,
	TRANSCODE_INT64,
	TRANSCODE_UINT64,
	TRANSCODE_FIXED64,
	TRANSCODE_FLOAT,
	TRANSCODE_DOUBLE,
	TRANSCODE_BOOL,
	TRANSCODE_TEXT,
	TRANSCODE_BYTES,
	TRANSCODE_HEX, /* bytes that JSON has in hex, only read */
	TRANSCODE_ENUM,
	TRANSCODE_MESSAGE,
	TRANSCODE_TIMESTAMP, /* google.protobuf.Timestamp */
	TRANSCODE_DURATION,  /* google.protobuf.Duration */
};

struct transcode_message;

/* The names of an enumeration, by value; NULL where there is none. */
struct transcode_enum {
	const char *const *names;
	size_t count;
};

struct transcode_field {
	uint32_t number;
	const char *name; /* snake_case, as in the .proto */
	enum transcode_kind kind;
	bool repeated;
	bool in_oneof; /* present or not matters: never written as a default */
	const struct transcode_message *message;
	const struct transcode_enum *names;
};

struct transcode_message {
	const char *name;
	const struct transcode_field *fields;
	size_t fields_count;
};

/*
 * Appends. The budget pays for what reading takes (json_read.h); NULL: nobody does. ERR_INVALID
 * names the message, the field and what was expected.
 */
int transcode_from_json(const struct transcode_message *message, struct slice json,
			struct budget *budget, struct strbuf *out, struct err *err);

/* The pairs of a query string; a path is field names joined by '.'. Appends. */
struct transcode_parameter {
	struct slice path, value;
};
int transcode_from_parameters(const struct transcode_message *message,
			      const struct transcode_parameter *parameters, size_t count,
			      struct strbuf *out, struct err *err);

/*
 * `defaults`: fields that are not there are written as what they mean then. After an
 * error `out` ends somewhere inside.
 */
int transcode_to_json(const struct transcode_message *message, struct slice bytes, bool defaults,
		      struct strbuf *out, struct err *err);

#endif
