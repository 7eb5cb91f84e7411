/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs, and what is said about missing privileges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/attach/perf_events.h"
#include "agent/attach/privileges.h"

static void cpu_lists_are_read(void **state)
{
	unsigned cpus[16];
	size_t count;

	(void)state;
	assert_true(perf_events_parse_cpus(slice_of("0-3,8,10-11\n"), cpus, 16, &count));
	assert_int_equal(count, 7);
	assert_int_equal(cpus[3], 3);
	assert_int_equal(cpus[4], 8);
	assert_int_equal(cpus[6], 11);
	assert_true(perf_events_parse_cpus(slice_of("0"), cpus, 16, &count));
	assert_int_equal(count, 1);
}

static void bad_cpu_lists_are_refused(void **state)
{
	static const char *const cases[] = { "",  "\n",	  "a",	"3-1",	    "0-16", "0-99999999999",
					     ",", "0,,1", "-1", "0-7,0-7,0" };
	unsigned cpus[16];
	size_t count = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (perf_events_parse_cpus(slice_of(cases[i]), cpus, 16, &count))
			fail_msg("accepted: %s", cases[i]);
	assert_int_equal(count, 77);
}

static void what_is_missing_is_said_in_lines_with_remedies(void **state)
{
	struct strbuf out = { 0 };

	(void)state;
	privileges_missing(NULL, &out);
	if (out.len)
		assert_int_equal(out.data[out.len - 1], '\n');
	strbuf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_lists_are_read),
		cmocka_unit_test(bad_cpu_lists_are_refused),
		cmocka_unit_test(what_is_missing_is_said_in_lines_with_remedies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
