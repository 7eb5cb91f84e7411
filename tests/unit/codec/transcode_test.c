/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as JSON and back, defaults, packed numbers, query strings, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/wire/transcode.h"

static const char *const colours[] = { "COLOUR_NONE", "COLOUR_RED" };
static const struct transcode_enum colour = { colours, 2 };
static const struct transcode_field inner_fields[] = {
	{ 1, "deep_value", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message inner = { "Inner", inner_fields, 1 };
static const struct transcode_field outer_fields[] = {
	{ 1, "label_name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "small", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 3, "big", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 4, "step", TRANSCODE_DOUBLE, false, false, NULL, NULL },
	{ 5, "raw", TRANSCODE_BYTES, false, false, NULL, NULL },
	{ 6, "colour", TRANSCODE_ENUM, false, false, NULL, &colour },
	{ 7, "inner", TRANSCODE_MESSAGE, false, false, &inner, NULL },
	{ 8, "numbers", TRANSCODE_INT64, true, false, NULL, NULL },
	{ 9, "inners", TRANSCODE_MESSAGE, true, false, &inner, NULL },
	{ 10, "start", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 11, "length", TRANSCODE_DURATION, false, false, NULL, NULL },
	{ 12, "flag", TRANSCODE_BOOL, false, false, NULL, NULL },
	{ 13, "names", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 14, "choice", TRANSCODE_TEXT, false, true, NULL, NULL },
};
static const struct transcode_message outer = { "Outer", outer_fields, 14 };

static void goes_through(const char *from, const char *to)
{
	struct strbuf bytes = { 0 }, json = { 0 };
	struct err err = { 0 };

	if (transcode_from_json(&outer, slice_of(from), NULL, &bytes, &err))
		fail_msg("%s: %s", from, err.message);
	if (transcode_to_json(&outer, strbuf_slice(&bytes), false, &json, &err))
		fail_msg("%s: %s", from, err.message);
	assert_string_equal(strbuf_text(&json), to);
	strbuf_free(&bytes);
	strbuf_free(&json);
}

static void json_becomes_what_it_was(void **state)
{
	(void)state;
	goes_through("", "{}");
	goes_through("{}", "{}");
	goes_through("{\"labelName\":\"a\\u0000b\"}", "{\"labelName\":\"a\\u0000b\"}");
	goes_through("{\"label_name\":\"x\"}", "{\"labelName\":\"x\"}");
	goes_through("{\"small\":-5,\"big\":\"18446744073709551615\"}",
		     "{\"small\":-5,\"big\":\"18446744073709551615\"}");
	goes_through("{\"big\":7,\"small\":1e3}", "{\"small\":1000,\"big\":\"7\"}");
	goes_through("{\"step\":0.25,\"raw\":\"AP8=\"}", "{\"step\":0.25,\"raw\":\"AP8=\"}");
	goes_through("{\"step\":\"-Infinity\"}", "{\"step\":\"-Infinity\"}");
	goes_through("{\"colour\":\"COLOUR_RED\"}", "{\"colour\":\"COLOUR_RED\"}");
	goes_through("{\"colour\":9}", "{\"colour\":9}");
	goes_through("{\"inner\":{\"deepValue\":\"-3\"},\"flag\":true}",
		     "{\"inner\":{\"deepValue\":\"-3\"},\"flag\":true}");
	goes_through("{\"numbers\":[1,\"2\",-3],\"inners\":[{},{\"deepValue\":4}]}",
		     "{\"numbers\":[\"1\",\"2\",\"-3\"],\"inners\":[{},{\"deepValue\":\"4\"}]}");
	goes_through("{\"start\":\"2026-01-02T15:04:05.25+02:00\",\"length\":\"-0.5s\"}",
		     "{\"start\":\"2026-01-02T13:04:05.25Z\",\"length\":\"-0.5s\"}");
	goes_through("{\"nobody\":{\"x\":[1]},\"labelName\":null}", "{}");
}

static void defaults_are_written_when_asked_for(void **state)
{
	struct strbuf json = { 0 };

	(void)state;
	assert_int_equal(transcode_to_json(&outer, (struct slice){ 0 }, true, &json, NULL), 0);
	assert_string_equal(
		strbuf_text(&json),
		"{\"labelName\":\"\",\"small\":0,\"big\":\"0\",\"step\":0,\"raw\":\"\","
		"\"colour\":\"COLOUR_NONE\",\"inner\":null,\"numbers\":[],\"inners\":[],"
		"\"start\":null,\"length\":null,\"flag\":false,\"names\":[]}");
	strbuf_free(&json);
}

static void packed_and_single_numbers_are_one_list(void **state)
{
	struct strbuf json = { 0 };

	(void)state;
	assert_int_equal(transcode_to_json(&outer, slice_from("\x42\x02\x01\x02\x40\x03", 6), false,
					   &json, NULL),
			 0);
	assert_string_equal(strbuf_text(&json), "{\"numbers\":[\"1\",\"2\",\"3\"]}");
	strbuf_free(&json);
}

static void wrong_json_is_refused_by_name(void **state)
{
	static const struct {
		const char *json, *words;
	} wrong[] = {
		{ "[1]", "expected a JSON object" },
		{ "{\"small\":\"x\"}", "Outer.small" },
		{ "{\"small\":2147483648}", "Outer.small" },
		{ "{\"big\":-1}", "Outer.big" },
		{ "{\"labelName\":5}", "Outer.label_name: expected a string" },
		{ "{\"numbers\":1}", "Outer.numbers: expected an array" },
		{ "{\"inner\":5}", "Outer.inner" },
		{ "{\"inner\":{\"deepValue\":{}}}", "Inner.deep_value" },
		{ "{\"flag\":1}", "Outer.flag" },
		{ "{\"start\":\"yesterday\"}", "Outer.start" },
		{ "{\"length\":\"1m\"}", "Outer.length" },
		{ "{\"raw\":\"*\"}", "Outer.raw: expected base64" },
		{ "{\"colour\":\"COLOUR_BLUE\"}", "Outer.colour" },
		{ "{\"small\":1,\"small\":2}", "JSON at byte" },
		{ "{\"small\":", "JSON at byte" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct strbuf out = { 0 };
		struct err err = { 0 };

		if (transcode_from_json(&outer, slice_of(wrong[i].json), NULL, &out, &err) !=
			    -ERR_INVALID ||
		    !strstr(err.message, wrong[i].words))
			fail_msg("%s: %s", wrong[i].json, err.message);
		strbuf_free(&out);
	}
}

static void parameters_are_paths(void **state)
{
	const struct transcode_parameter parameters[] = {
		{ SLICE_LITERAL("names"), SLICE_LITERAL("a") },
		{ SLICE_LITERAL("inner.deepValue"), SLICE_LITERAL("12") },
		{ SLICE_LITERAL("nobody.x"), SLICE_LITERAL("?") },
		{ SLICE_LITERAL("names"), SLICE_LITERAL("b") },
		{ SLICE_LITERAL("length"), SLICE_LITERAL("3s") },
	};
	const struct transcode_parameter wrong = { SLICE_LITERAL("small.x"), SLICE_LITERAL("1") };
	struct strbuf bytes = { 0 }, json = { 0 };

	(void)state;
	assert_int_equal(transcode_from_parameters(&outer, parameters, 5, &bytes, NULL), 0);
	assert_int_equal(transcode_to_json(&outer, strbuf_slice(&bytes), false, &json, NULL), 0);
	assert_string_equal(strbuf_text(&json), "{\"inner\":{\"deepValue\":\"12\"},"
						"\"length\":\"3s\",\"names\":[\"a\",\"b\"]}");
	assert_int_equal(transcode_from_parameters(&outer, &wrong, 1, &bytes, NULL), -ERR_INVALID);
	strbuf_free(&bytes);
	strbuf_free(&json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_becomes_what_it_was),
		cmocka_unit_test(defaults_are_written_when_asked_for),
		cmocka_unit_test(packed_and_single_numbers_are_one_list),
		cmocka_unit_test(wrong_json_is_refused_by_name),
		cmocka_unit_test(parameters_are_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
