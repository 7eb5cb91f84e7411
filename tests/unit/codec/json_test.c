/* SPDX-License-Identifier: Apache-2.0 */
/* json: exactly the text that RFC 8259 wants for what was said. */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/wire/decimal.h"
#include "base/budget.h"
#include "codec/wire/json.h"
#include "codec/wire/json_read.h"

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

static void numbers_together_are_written_as_one_by_one(void **state)
{
	const struct json_number numbers[] = {
		{ SLICE_LITERAL("least"), INT64_MIN },
		{ SLICE_LITERAL("none"), 0 },
		{ SLICE_LITERAL("most"), INT64_MAX },
	};
	struct strbuf out = { 0 };
	struct json json;

	(void)state;
	json_begin(&json, &out);
	json_open_object(&json);
	json_members_int(&json, numbers, 3);
	json_member_object(&json, "inner");
	json_member_bool(&json, "first", true);
	json_members_int(&json, numbers + 1, 1);
	json_close_object(&json);
	json_close_object(&json);
	assert_string_equal(strbuf_text(&out), "{\"least\":-9223372036854775808,\"none\":0,"
					       "\"most\":9223372036854775807,"
					       "\"inner\":{\"first\":true,\"none\":0}}");
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

/* What jansson has of the allocator, and had at most. */
static size_t taken_bytes, taken_bytes_max;

static void *counted_malloc(size_t size)
{
	void *memory = malloc(size);

	taken_bytes += malloc_usable_size(memory) + sizeof(size_t);
	if (taken_bytes > taken_bytes_max)
		taken_bytes_max = taken_bytes;
	return memory;
}

static void counted_free(void *memory)
{
	if (memory)
		taken_bytes -= malloc_usable_size(memory) + sizeof(size_t);
	free(memory);
}

static void reading_is_paid_before_it_takes_memory(void **state)
{
	static const char *const elements[] = {
		"{}",
		"[]",
		"1",
		"1.5",
		"\"\"",
		"null",
		"{\"a\":1}",
		"[[1,2,3,4,5,6,7,8,9]]",
		"\"\\u20ac\\\"text\"",
		"{\"a\":{\"b\":{\"c\":[\"d\"]}}}",
		"{\"0\":1,\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1}",
	};
	json_malloc_t own_malloc;
	json_free_t own_free;

	(void)state;
	json_get_alloc_funcs(&own_malloc, &own_free);
	json_set_alloc_funcs(counted_malloc, counted_free);
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		for (int count = 1; count <= 20000; count = count * 3 + 1) {
			struct budget budget = { .max_bytes = INT64_MAX };
			struct strbuf text = { 0 };
			struct json_read read;

			strbuf_addf(&text, "[%s", elements[i]);
			for (int k = 1; k < count; k++)
				strbuf_addf(&text, ",%s", elements[i]);
			strbuf_addf(&text, "]");
			taken_bytes_max = 0;
			assert_int_equal(
				json_read(strbuf_slice(&text), 0, "a list", &budget, &read, NULL),
				0);
			assert_int_equal(json_array_size(read.root), count);
			assert_true((int64_t)taken_bytes_max <= budget.used_bytes);
			assert_true(budget.used_bytes < (int64_t)taken_bytes_max * 8);
			json_read_free(&read);
			assert_int_equal(budget.used_bytes, 0);
			strbuf_free(&text);
		}
	assert_int_equal(taken_bytes, 0);
	json_set_alloc_funcs(own_malloc, own_free);
}

/* Long keys, and one object with many of them: its table grows. */
static void an_object_of_many_keys_is_paid(void **state)
{
	struct budget budget = { .max_bytes = INT64_MAX };
	struct strbuf text = { 0 };
	json_malloc_t own_malloc;
	json_free_t own_free;
	struct json_read read;

	(void)state;
	strbuf_addf(&text, "{\"key\":0");
	for (int i = 0; i < 70000; i++)
		strbuf_addf(&text, ",\"k%d\":%d", i, i);
	strbuf_addf(&text, "}");
	json_get_alloc_funcs(&own_malloc, &own_free);
	json_set_alloc_funcs(counted_malloc, counted_free);
	taken_bytes_max = 0;
	assert_int_equal(json_read(strbuf_slice(&text), 0, "an object", &budget, &read, NULL), 0);
	assert_true((int64_t)taken_bytes_max <= budget.used_bytes);
	json_read_free(&read);
	json_set_alloc_funcs(own_malloc, own_free);
	strbuf_free(&text);
}

static void what_is_not_paid_is_not_read(void **state)
{
	struct budget budget = { .max_bytes = 1000 };
	struct json_read read;
	struct err err;

	(void)state;
	assert_int_equal(
		json_read(SLICE_LITERAL("[{},{},{},{}]"), 0, "a list", &budget, &read, &err),
		-ERR_LIMIT);
	assert_null(read.root);
	json_read_free(&read);
	assert_int_equal(json_read(SLICE_LITERAL("[1,"), 0, "a list", &budget, &read, &err),
			 -ERR_INVALID);
	assert_non_null(strstr(err.message, "a list: JSON at byte 3"));
	json_read_free(&read);
	assert_int_equal(budget.used_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_get_their_commas),
		cmocka_unit_test(numbers_together_are_written_as_one_by_one),
		cmocka_unit_test(strings_are_escaped_or_repaired),
		cmocka_unit_test(numbers_are_exact_and_short),
		cmocka_unit_test(doubles_are_as_printf_writes_them),
		cmocka_unit_test(reading_is_paid_before_it_takes_memory),
		cmocka_unit_test(an_object_of_many_keys_is_paid),
		cmocka_unit_test(what_is_not_paid_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
