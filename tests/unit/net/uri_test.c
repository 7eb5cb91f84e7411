/* SPDX-License-Identifier: Apache-2.0 */
/* uri: targets, percent-encoding. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/http/uri.h"

static void targets_are_split(void **state)
{
	static const struct {
		const char *target, *path, *query; /* path NULL: refused */
	} cases[] = {
		{ "/", "/", "" },
		{ "/a/b?c=d&e", "/a/b", "c=d&e" },
		{ "/a?b?c", "/a", "b?c" },
		{ "/a#b?c", "/a", "" },
		{ "http://host:1/a?b", "/a", "b" },
		{ "HTTPS://host", "/", "" },
		{ "http://", NULL, NULL },
		{ "*", NULL, NULL },
		{ "host:80", NULL, NULL },
		{ "", NULL, NULL },
		{ "?a", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice path, query;

		assert_int_equal(uri_split(slice_of(cases[i].target), &path, &query),
				 cases[i].path != NULL);
		if (!cases[i].path)
			continue;
		assert_true(slice_is(path, cases[i].path));
		assert_true(slice_is(query, cases[i].query));
	}
}

static void escapes_are_decoded_or_refused(void **state)
{
	static const struct {
		const char *text;
		bool plus_is_blank;
		const char *decoded; /* NULL: refused */
	} cases[] = {
		{ "", false, "" },	   { "a+b", false, "a+b" },	    { "a+b", true, "a b" },
		{ "%41%62", false, "Ab" }, { "%c3%A9", false, "\xc3\xa9" }, { "%2B", true, "+" },
		{ "%", false, NULL },	   { "%4", false, NULL },	    { "%zz", false, NULL },
		{ "a%00b", false, NULL },  { "%%41", false, NULL },	    { "%+1", true, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice text = slice_of(cases[i].text);
		struct strbuf out = { 0 };

		assert_int_equal(uri_decode(text, cases[i].plus_is_blank, &out),
				 cases[i].decoded != NULL);
		assert_int_equal(uri_is_decodable(text), cases[i].decoded != NULL);
		if (cases[i].decoded)
			assert_true(slice_is(strbuf_slice(&out), cases[i].decoded));
		strbuf_free(&out);
	}
}

/* Every byte, as a peer decodes it; only what has no meaning anywhere stands as it is. */
static void text_is_encoded(void **state)
{
	char all[255];
	struct strbuf out = { 0 }, back = { 0 };

	(void)state;
	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	strbuf_add_for_uri(&out, slice_from(all, sizeof(all)), "");
	for (size_t i = 0; i < out.len; i++)
		assert_true(isalnum((unsigned char)out.data[i]) || strchr("-._~%", out.data[i]));
	assert_true(uri_decode(strbuf_slice(&out), true, &back));
	assert_true(slice_equal(slice_from(all, sizeof(all)), strbuf_slice(&back)));
	strbuf_clear(&out);
	strbuf_add_for_uri(&out, SLICE_LITERAL("/a+b c\0\xc3\xa9?"), "/+");
	assert_string_equal(strbuf_text(&out), "/a+b%20c%00%C3%A9%3F");
	strbuf_free(&out);
	strbuf_free(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_split),
		cmocka_unit_test(escapes_are_decoded_or_refused),
		cmocka_unit_test(text_is_encoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
