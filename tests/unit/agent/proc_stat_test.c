/* SPDX-License-Identifier: Apache-2.0 */
/* Name and start of a process from /proc/PID/stat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/procs/proc_stat.h"

#define BEFORE_START " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "

static void names_may_hold_anything(void **state)
{
	static const struct {
		const char *text, *name;
		uint64_t start;
	} cases[] = {
		{ "12 (cat)" BEFORE_START "4711 0 0\n", "cat", 4711 },
		{ "12 (a) b) (c)" BEFORE_START "1 0\n", "a) b) (c", 1 },
		{ "12 ( ) )" BEFORE_START "18446744073709551615 0\n", " ) ", UINT64_MAX },
		{ "12 ()" BEFORE_START "5 0\n", "", 5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct proc_stat stat;

		assert_true(proc_stat_parse(slice_of(cases[i].text), &stat));
		assert_true(slice_is(stat.name, cases[i].name));
		assert_int_equal(stat.start_ticks, cases[i].start);
	}
}

static void ended_processes_are_told(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_true(proc_stat_parse(
		SLICE_LITERAL("1 (a) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9 0"), &stat));
	assert_false(stat.ended);
	assert_true(proc_stat_parse(
		SLICE_LITERAL("1 (a) Z 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9 0"), &stat));
	assert_true(stat.ended);
	assert_int_equal(stat.start_ticks, 9);
}

static void malformed_text_is_refused(void **state)
{
	static const char *const cases[] = { "",
					     "12",
					     "12 (cat",
					     "12 )cat(",
					     "12 (cat)",
					     "12 (cat) S 1 2 3",
					     "12 (cat)" BEFORE_START "x 0" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct proc_stat stat = { .start_ticks = 7 };

		assert_false(proc_stat_parse(slice_of(cases[i]), &stat));
		assert_int_equal(stat.start_ticks, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_may_hold_anything),
		cmocka_unit_test(ended_processes_are_told),
		cmocka_unit_test(malformed_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
