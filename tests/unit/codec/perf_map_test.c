/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of perf maps, as runtimes write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "codec/process/perf_map.h"

static const struct {
	const char *line, *name;
	uint64_t start;
	uint32_t bytes;
} good[] = {
	{ "7ff6ac0061c0 30c JS:*heavyLoop /srv/a b.js:1:19", "JS:*heavyLoop /srv/a b.js:1:19",
	  0x7ff6ac0061c0, 0x30c },
	{ "0x00007f1a3c0d2120 0x8 StubRoutines (1)", "StubRoutines (1)", 0x7f1a3c0d2120, 8 },
	{ "00007F2B5C3D1A40 1B2 void [app] Program::Main()[Tier0]",
	  "void [app] Program::Main()[Tier0]", 0x7f2b5c3d1a40, 0x1b2 },
	{ "0X10\t0Xff  \tf\r", "f", 0x10, 0xff },
	{ "fffffffffffffffe 1 end", "end", UINT64_MAX - 1, 1 },
	{ "0 ffffffff 0x", "0x", 0, UINT32_MAX },
};

static const char *const bad[] = {
	"",
	"7f00",
	"7f00 10",
	"7f00 10 ",
	"7f00 10 \r",
	"7f00 0 empty",
	"7f00 100000000 over_4_gib",
	"ffffffffffffffff 1 wraps",
	"10000000000000000 1 over_64_bits",
	"7g00 10 not_hexadecimal",
	" 7f00 10 starts_with_a_blank",
	"-7f00 10 negative",
	"0x 10 no_digits",
	"10 7f00",
};

static void lines_of_runtimes_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct perf_map_line got;
		struct err err;

		if (perf_map_parse_line(slice_of(good[i].line), &got, &err))
			fail_msg("%s", err.message);
		assert_int_equal(got.start, good[i].start);
		assert_int_equal(got.bytes, good[i].bytes);
		if (!slice_is(got.name, good[i].name))
			fail_msg("name of \"%s\"", good[i].line);
	}
}

static void malformed_lines_are_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct perf_map_line got = { .bytes = 77 };
		struct err err;

		if (perf_map_parse_line(slice_of(bad[i]), &got, &err) != -ERR_INVALID)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(got.bytes, 77); /* untouched */
		assert_non_null(strstr(err.message, bad[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_runtimes_are_read),
		cmocka_unit_test(malformed_lines_are_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
