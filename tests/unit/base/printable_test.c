/* SPDX-License-Identifier: Apache-2.0 */
/* What terminals obey is shown instead; everything else stays as it is. */
#include "base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(struct slice text, const char *line, const char *lines)
{
	struct strbuf out = { 0 };

	printable_add(&out, text);
	assert_string_equal(strbuf_text(&out), line);
	strbuf_clear(&out);
	printable_add_lines(&out, text);
	assert_string_equal(strbuf_text(&out), lines);
	strbuf_free(&out);
}

static void check_both(const char *text, const char *want)
{
	check(slice_of(text), want, want);
}

static void plain_text_stays(void **state)
{
	(void)state;
	check_both("", "");
	check_both("a b\\n \"~\" gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5", /* ü ß € and a
										       flame */
		   "a b\\n \"~\" gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5");
	check_both("\xe2\x80\x8d\xe2\x80\xa7\xc2\xa0", /* a joiner, U+2027 and U+00A0 are no
							  commands */
		   "\xe2\x80\x8d\xe2\x80\xa7\xc2\xa0");
}

static void controls_are_shown(void **state)
{
	(void)state;
	check_both("\033[31mred\a\b\r\f\v\x7f",
		   "\\u001b[31mred\\u0007\\u0008\\u000d\\u000c\\u000b\\u007f");
	check_both("\xc2\x9b"
		   "2J\xc2\x80\xc2\x9f",
		   "\\u009b2J\\u0080\\u009f");
	check(SLICE_LITERAL("a\0b"), "a\\u0000b", "a\\u0000b");
	check(SLICE_LITERAL("a\n\tb"), "a\\u000a\\u0009b", "a\n\tb");
}

static void directions_are_shown(void **state)
{
	(void)state;
	check_both("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f");
	check_both("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae",
		   "\\u2028\\u2029\\u202a\\u202e");
	check_both("user\xe2\x81\xa6nimda\xe2\x81\xa9", "user\\u2066nimda\\u2069");
}

static void what_is_no_utf8_is_shown(void **state)
{
	(void)state;
	check_both("\x9b"
		   "2J",
		   "\\u009b2J"); /* C1 in one byte */
	check_both("\xff\xc3", "\\u00ff\\u00c3");
	check_both("\xc0\x9b", "\\u00c0\\u009b");	     /* ESC, over-long */
	check_both("\xed\xa0\x80", "\\u00ed\\u00a0\\u0080"); /* half of a pair */
	check_both("\xe2\x80", "\\u00e2\\u0080");
}

/* Of all characters, those that are kept are exactly those that are no commands. */
static void nothing_that_commands_passes(void **state)
{
	(void)state;
	for (uint32_t code = 0; code < 0x3000; code++) {
		char bytes[3];
		size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
		uint32_t got;
		bool commands = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
				code == 0x200e || code == 0x200f ||
				(code >= 0x2028 && code <= 0x202e) ||
				(code >= 0x2066 && code <= 0x2069);

		bytes[0] = (char)(len == 1   ? code
				  : len == 2 ? 0xc0 | code >> 6
					     : 0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (len == 2 ? code & 0x3f : code >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		if (!commands) {
			assert_int_equal(printable_command(slice_from(bytes, len), &got), 0);
			continue;
		}
		assert_int_equal(printable_command(slice_from(bytes, len), &got), len);
		assert_int_equal(got, code);
	}
}

static void printing_is_of_any_length(void **state)
{
	char want[3003], got[4000] = "";
	FILE *file = tmpfile();

	(void)state;
	memset(want, 'x', 3000);
	want[3000] = '\0';
	printable_print(file, "%s\033%d\n", want, 7);
	rewind(file);
	assert_int_equal(fread(got, 1, sizeof(got), file), 3008);
	assert_memory_equal(got, want, 3000);
	assert_string_equal(got + 3000, "\\u001b7\n");
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_stays),
		cmocka_unit_test(controls_are_shown),
		cmocka_unit_test(directions_are_shown),
		cmocka_unit_test(what_is_no_utf8_is_shown),
		cmocka_unit_test(nothing_that_commands_passes),
		cmocka_unit_test(printing_is_of_any_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
