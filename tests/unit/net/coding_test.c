/* SPDX-License-Identifier: Apache-2.0 */
/* coding and lines: what clients accept, and header lines that stay lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/http/coding.h"
#include "net/http/lines.h"

static void gzip_is_used_only_where_it_is_accepted(void **state)
{
	static const struct {
		const char *accept;
		bool accepts;
	} cases[] = {
		{ "gzip", true },      { "br, GZIP;q=0.5", true },
		{ "x-gzip", true },    { "*", true },
		{ "", false },	       { "br", false },
		{ "gzip;q=0", false }, { "gzip; q=0.000", false },
		{ "*;q=0", false },    { "gzip;q=0, *", false },
		{ "identity", false }, { "gzipx", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(coding_accepts_gzip(slice_of(cases[i].accept)), cases[i].accepts);
}

static void what_has_some_size_and_is_not_packed_is_worth_compressing(void **state)
{
	(void)state;
	assert_true(coding_pays("text/html; charset=utf-8", 2000));
	assert_true(coding_pays("application/json", 2000));
	assert_false(coding_pays("text/html", 1000));
	assert_true(coding_pays("application/octet-stream", 2000));
	assert_false(coding_pays("image/png", 2000));
}

static void unknown_codings_are_named(void **state)
{
	struct strbuf out = { 0 };
	struct err err;

	(void)state;
	assert_true(coding_is_known(slice_of("zstd")));
	assert_true(coding_is_known(slice_of("")));
	assert_false(coding_is_known(slice_of("br")));
	assert_int_equal(coding_decode(slice_of("br"), slice_of("x"), 10, &out, &err),
			 -ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "\"br\""));
	strbuf_free(&out);
}

static void lines_cannot_be_broken_out_of(void **state)
{
	struct strbuf lines = { 0 };

	(void)state;
	assert_true(lines_add(&lines, slice_of("good"), slice_of("a: b")));
	assert_false(lines_add(&lines, slice_of("bad"), slice_of("x\r\ny: z")));
	assert_false(lines_add(&lines, slice_of("bad\r\n"), slice_of("x")));
	assert_false(lines_add(&lines, slice_of("Upper"), slice_of("x")));
	assert_false(lines_add(&lines, slice_of(""), slice_of("x")));
	assert_string_equal(strbuf_text(&lines), "good: a: b\r\n");
	strbuf_free(&lines);
}

static void lines_are_read_and_rubbish_is_passed_over(void **state)
{
	struct slice lines = slice_of("a: 1\r\nrubbish\r\n: x\r\nB: 2\r\nc:3\n\r\nd:\t4 \r\n");
	struct net_header header;

	(void)state;
	assert_true(slice_is(lines_find(lines, "c"), "3"));
	assert_int_equal(lines_find(lines, "x").len, 0);
	assert_true(lines_next(&lines, &header));
	assert_true(slice_is(header.name, "a"));
	assert_true(lines_next(&lines, &header));
	assert_true(slice_is(header.name, "c"));
	assert_true(lines_next(&lines, &header));
	assert_true(slice_is(header.value, "4"));
	assert_false(lines_next(&lines, &header));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gzip_is_used_only_where_it_is_accepted),
		cmocka_unit_test(what_has_some_size_and_is_not_packed_is_worth_compressing),
		cmocka_unit_test(unknown_codings_are_named),
		cmocka_unit_test(lines_cannot_be_broken_out_of),
		cmocka_unit_test(lines_are_read_and_rubbish_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
