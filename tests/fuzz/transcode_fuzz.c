/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input that begins with '{' is JSON, other input a message. What is understood of JSON is a
 * message that can be written as JSON, which means the same again.
 */
#include <stdlib.h>

#include "codec/wire/transcode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const words[] = { "ZERO", NULL, "TWO" };
static const struct transcode_enum names = { words, 3 };
static const struct transcode_message message;
static const struct transcode_field fields[] = {
	{ 1, "text_value", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "a", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 3, "b", TRANSCODE_UINT64, true, false, NULL, NULL },
	{ 4, "c", TRANSCODE_DOUBLE, false, false, NULL, NULL },
	{ 5, "d", TRANSCODE_BYTES, true, false, NULL, NULL },
	{ 6, "e", TRANSCODE_ENUM, false, false, NULL, &names },
	{ 7, "f", TRANSCODE_MESSAGE, true, false, &message, NULL },
	{ 8, "g", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 9, "h", TRANSCODE_DURATION, false, false, NULL, NULL },
	{ 10, "i", TRANSCODE_BOOL, false, true, NULL, NULL },
	{ 11, "j", TRANSCODE_UINT32, false, false, NULL, NULL },
	{ 12, "k", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 13, "l", TRANSCODE_FLOAT, true, false, NULL, NULL },
};
static const struct transcode_message message = { "Message", fields, 13 };

static void check_again(struct slice bytes)
{
	struct strbuf json = { 0 }, again = { 0 }, json_again = { 0 };

	if (transcode_to_json(&message, bytes, false, &json, NULL) ||
	    transcode_from_json(&message, strbuf_slice(&json), NULL, &again, NULL) ||
	    transcode_to_json(&message, strbuf_slice(&again), false, &json_again, NULL) ||
	    !slice_equal(strbuf_slice(&json), strbuf_slice(&json_again)))
		abort();
	strbuf_free(&json);
	strbuf_free(&again);
	strbuf_free(&json_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_from(data, size);
	struct strbuf out = { 0 };

	if (size && data[0] == '{') {
		if (!transcode_from_json(&message, input, NULL, &out, NULL))
			check_again(strbuf_slice(&out));
	} else {
		(void)transcode_to_json(&message, input, size % 2, &out, NULL);
	}
	strbuf_free(&out);
	return 0;
}
