/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: comparing, cutting, UTF-8 and numbers, with empty and NULL slices everywhere. */
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct slice nothing = { NULL, 0 };

static void equality_looks_at_bytes(void **state)
{
	(void)state;
	assert_true(slice_equal(nothing, SLICE_LITERAL("")));
	assert_true(slice_is(SLICE_LITERAL("abc"), "abc"));
	assert_false(slice_is(SLICE_LITERAL("abc"), "abd"));
	assert_false(slice_is(SLICE_LITERAL("abc"), "ab"));
	assert_true(slice_equal(slice_from("a\0b", 3), slice_from("a\0b", 3)));
	assert_false(slice_equal(slice_from("a\0b", 3), slice_from("a\0c", 3)));
}

static void order_is_bytewise_and_prefixes_come_first(void **state)
{
	static const char *const ascending[] = { "", "A", "a", "aa", "ab", "b", "\xc3\xa9" };
	const int count = sizeof(ascending) / sizeof(ascending[0]);

	(void)state;
	for (int i = 0; i < count; i++) {
		for (int j = 0; j < count; j++) {
			int order = slice_compare(slice_of(ascending[i]), slice_of(ascending[j]));

			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
	assert_int_equal(slice_compare(nothing, SLICE_LITERAL("")), 0);
	assert_true(slice_compare(nothing, SLICE_LITERAL("x")) < 0);
}

static void prefixes_are_found(void **state)
{
	(void)state;
	assert_true(slice_starts_with(SLICE_LITERAL("kernel"), SLICE_LITERAL("ker")));
	assert_true(slice_starts_with(nothing, nothing));
	assert_false(slice_starts_with(SLICE_LITERAL("ke"), SLICE_LITERAL("ker")));
	assert_true(slice_ends_with(SLICE_LITERAL("part.tmp"), SLICE_LITERAL(".tmp")));
	assert_true(slice_ends_with(SLICE_LITERAL(".tmp"), SLICE_LITERAL(".tmp")));
	assert_true(slice_ends_with(nothing, nothing));
	assert_false(slice_ends_with(SLICE_LITERAL("tmp"), SLICE_LITERAL(".tmp")));
	assert_true(slice_ends_in_path(SLICE_LITERAL("src/a.c"), SLICE_LITERAL("a.c")));
	assert_false(slice_ends_in_path(SLICE_LITERAL("src/ba.c"), SLICE_LITERAL("a.c")));
	assert_false(slice_ends_in_path(SLICE_LITERAL("a.c"), SLICE_LITERAL("a.c")));
	assert_false(slice_ends_in_path(SLICE_LITERAL("src/"), nothing));
}

static void tail_stops_at_the_end(void **state)
{
	struct slice s = SLICE_LITERAL("abc");

	(void)state;
	assert_true(slice_is(slice_tail(s, 1), "bc"));
	assert_int_equal(slice_tail(s, 3).len, 0);
	assert_int_equal(slice_tail(s, SIZE_MAX).len, 0);
	assert_int_equal(slice_tail(nothing, 5).len, 0);
}

static void bytes_are_found(void **state)
{
	(void)state;
	assert_int_equal(slice_find_byte(SLICE_LITERAL("a=b=c"), '='), 1);
	assert_int_equal(slice_find_byte(SLICE_LITERAL("abc"), '='), SIZE_MAX);
	assert_int_equal(slice_find_byte(nothing, '='), SIZE_MAX);
}

static void cut_walks_a_list(void **state)
{
	struct slice rest = SLICE_LITERAL("a,,b");

	(void)state;
	assert_true(slice_is(slice_cut(rest, ',', &rest), "a"));
	assert_true(slice_is(slice_cut(rest, ',', &rest), ""));
	assert_true(slice_is(slice_cut(rest, ',', &rest), "b"));
	assert_int_equal(rest.len, 0);
	assert_int_equal(slice_cut(nothing, ',', &rest).len, 0);
	assert_int_equal(rest.len, 0);
}

/* Boundaries of RFC 3629, section 4. */
static void utf8_is_checked_strictly(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool good;
	} cases[] = {
		{ "", 0, true },
		{ "plain", 5, true },
		{ "a\0b", 3, false },
		{ "looked at in words\x01\x7f", 20, true },
		{ "looked\0at in words", 18, false },
		{ "looked \xff at in words", 20, false },
		{ "\xc2\x80", 2, true },
		{ "\xc1\xbf", 2, false }, /* overlong */
		{ "\xe0\xa0\x80", 3, true },
		{ "\xe0\x9f\xbf", 3, false }, /* overlong */
		{ "\xed\x9f\xbf", 3, true },
		{ "\xed\xa0\x80", 3, false }, /* surrogate */
		{ "\xef\xbf\xbf", 3, true },
		{ "\xf0\x90\x80\x80", 4, true },
		{ "\xf0\x8f\xbf\xbf", 4, false }, /* overlong */
		{ "\xf4\x8f\xbf\xbf", 4, true },
		{ "\xf4\x90\x80\x80", 4, false }, /* above U+10FFFF */
		{ "\xf5\x80\x80\x80", 4, false },
		{ "\xe2\x82", 2, false }, /* cut short */
		{ "\xe2\x82\x28", 3, false },
		{ "\x80", 1, false },
		{ "ok\xff", 3, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (slice_is_utf8(slice_from(cases[i].bytes, cases[i].len)) != cases[i].good)
			fail_msg("case %zu", i);
	assert_true(slice_is_utf8(nothing));
}

static void numbers_are_whole_or_refused(void **state)
{
	static const char *const bad[] = { "",
					   " 1",
					   "1 ",
					   "+1",
					   "-1",
					   "0x10",
					   "1e3",
					   "18446744073709551616",
					   "99999999999999999999999" };
	uint64_t value = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(slice_parse_u64(slice_of(bad[i]), &value));
	assert_int_equal(value, 42);
	assert_true(slice_parse_u64(SLICE_LITERAL("18446744073709551615"), &value));
	assert_true(value == UINT64_MAX);
	assert_true(slice_parse_u64(SLICE_LITERAL("007"), &value));
	assert_int_equal(value, 7);
}

static void printing_never_reads_past_the_slice(void **state)
{
	char text[16];
	struct slice huge = { "short", (size_t)UINT32_MAX + 1 };

	(void)state;
	snprintf(text, sizeof(text), "<%.*s>", SLICE_FMT(slice_from("abcdef", 3)));
	assert_string_equal(text, "<abc>");
	snprintf(text, sizeof(text), "<%.*s>", SLICE_FMT(nothing));
	assert_string_equal(text, "<>");
	/* A length over INT_MAX must not turn into a small or negative precision. */
	snprintf(text, sizeof(text), "<%.*s>", SLICE_FMT(huge));
	assert_string_equal(text, "<short>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_looks_at_bytes),
		cmocka_unit_test(order_is_bytewise_and_prefixes_come_first),
		cmocka_unit_test(prefixes_are_found),
		cmocka_unit_test(tail_stops_at_the_end),
		cmocka_unit_test(bytes_are_found),
		cmocka_unit_test(cut_walks_a_list),
		cmocka_unit_test(utf8_is_checked_strictly),
		cmocka_unit_test(numbers_are_whole_or_refused),
		cmocka_unit_test(printing_never_reads_past_the_slice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
