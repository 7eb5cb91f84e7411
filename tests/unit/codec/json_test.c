/* SPDX-License-Identifier: Apache-2.0 */
/* json: exactly the text that RFC 8259 wants for what was said. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/wire/decimal.h"
#include "codec/wire/json.h"

static void containers_get_their_commas(void **state)
{
	struct strbuf out = { 0 };
	struct json json;

	(void)state;
	json_begin(&json, &out);
	json_open_object(&json);
	json_put_key(&json, "a");
	json_open_array(&json);
	json_put_int(&json, -1);
	json_open_array(&json);
	json_close_array(&json);
	json_open_object(&json);
	json_close_object(&json);
	json_put_null(&json);
	json_close_array(&json);
	json_put_key(&json, "b");
	json_put_bool(&json, true);
	json_put_key(&json, "c");
	json_open_object(&json);
	json_put_key(&json, "d");
	json_put_text(&json, "e");
	json_close_object(&json);
	json_close_object(&json);
	assert_string_equal(strbuf_text(&out),
			    "{\"a\":[-1,[],{},null],\"b\":true,\"c\":{\"d\":\"e\"}}");
	strbuf_free(&out);
}

static void assert_written(struct slice given, const char *expected)
{
	struct strbuf out = { 0 };
	struct json json;

	json_begin(&json, &out);
	json_put_string(&json, given);
	assert_string_equal(strbuf_text(&out), expected);
	strbuf_free(&out);
}

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static void strings_are_escaped_or_repaired(void **state)
{
	(void)state;
	assert_written(SLICE_LITERAL(""), "\"\"");
	assert_written(SLICE_LITERAL("\"\\/"), "\"\\\"\\\\/\"");
	assert_written(SLICE_LITERAL("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
	assert_written(SLICE_LITERAL("\v\x01\x1f\x7f"), "\"\\u000b\\u0001\\u001f\\u007f\"");
	assert_written(SLICE_LITERAL("a\0b"), "\"a\\u0000b\"");
	assert_written(SLICE_LITERAL("Grüße, 世界 🌍"), "\"Grüße, 世界 🌍\"");
	assert_written(SLICE_LITERAL("a\xff"
				     "b\xc3"),
		       "\"a" BAD "b" BAD "\"");
	assert_written(SLICE_LITERAL("\xed\xa0\x80"), "\"" BAD BAD BAD "\""); /* a surrogate */
	assert_written(SLICE_LITERAL("\xf0\x9f\x8c"), "\"" BAD BAD BAD "\""); /* cut short */
	assert_written(SLICE_LITERAL("\xc0\x80"), "\"" BAD BAD "\"");	      /* overlong */
}

static void numbers_are_exact_and_short(void **state)
{
	struct strbuf out = { 0 };
	struct json json;

	(void)state;
	json_begin(&json, &out);
	json_open_array(&json);
	json_put_int(&json, INT64_MIN);
	json_put_uint(&json, UINT64_MAX);
	json_put_double(&json, 0.1);
	json_put_double(&json, 1e300);
	json_put_double(&json, 1.0 / 3);
	json_put_double(&json, NAN);
	json_put_double(&json, -INFINITY);
	json_put_double(&json, -0.5);
	json_put_double(&json, -0.0);
	json_close_array(&json);
	assert_string_equal(strbuf_text(&out),
			    "[-9223372036854775808,18446744073709551615,0.1,1e+300,"
			    "0.3333333333333333,null,null,-0.5,-0.0]");
	strbuf_free(&out);
}

/* The fewest digits that printf needs for text that reads back; one less may do at powers of 2. */
static size_t print_shortest(char *to, size_t bytes, double value)
{
	int len = 0;

	for (int digits = 15; digits <= 17; digits++) {
		len = snprintf(to, bytes, "%.*g", digits, value);
		if (strtod(to, NULL) == value)
			break;
	}
	return (size_t)len;
}

static void assert_shortest(double value)
{
	char printed[64], text[DECIMAL_BYTES_MAX + 1] = "";
	size_t len = decimal_put_double(text, value);

	assert_true(len <= DECIMAL_BYTES_MAX);
	text[len] = '\0';
	assert_true(strtod(text, NULL) == value);
	if (len >= print_shortest(printed, sizeof(printed), value))
		assert_string_equal(text, printed);
}

static void doubles_are_as_printf_writes_them(void **state)
{
	static const double values[] = {
		1,
		10,
		-7,
		0.1,
		1e-4,
		9.9999e-5,
		1e14,
		999999999999999,
		1e15,
		1.5e15,
		1e16,
		1e17,
		123456.5,
		0.30000000000000004,
		5e-324,
		1.7976931348623157e308,
		2.5e-14,
		1e21,
		1e22,
		1e23,
		4503599627370495.5,
		9007199254740992,
		-1e-7,
		-1234567890123456,
		1e99,
		1e100,
		1.25e-9,
		2.2250738585072014e-308,
	};
	uint64_t random = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		assert_shortest(values[i]);
	for (int i = 0; i < 20000; i++) {
		double value;

		random = random * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &random, sizeof(value));
		if (isfinite(value))
			assert_shortest(value);
		assert_shortest((double)(int64_t)random / 1e9);
		assert_shortest((double)(random >> 50) / 300);
		assert_shortest((double)(random >> 40) / 1000);
		assert_shortest((double)(random >> 13) / 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_get_their_commas),
		cmocka_unit_test(strings_are_escaped_or_repaired),
		cmocka_unit_test(numbers_are_exact_and_short),
		cmocka_unit_test(doubles_are_as_printf_writes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
