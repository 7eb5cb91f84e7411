/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, sizes and times as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "config/units.h"

static void durations_are_read_in_all_units(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{ "10s", 10 * CLOCK_NS_PER_S },
		{ "5m", 300 * CLOCK_NS_PER_S },
		{ "1h30m", 5400 * CLOCK_NS_PER_S },
		{ "7d", 7 * 86400 * CLOCK_NS_PER_S },
		{ "250ms", 250 * CLOCK_NS_PER_MS },
		{ "1.5s", 1500 * CLOCK_NS_PER_MS },
		{ "0", 0 },
		{ "2w", 14 * 86400 * CLOCK_NS_PER_S },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ns = -1;

		assert_int_equal(units_parse_duration(slice_of(cases[i].text), &ns, NULL), 0);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void bad_durations_are_refused_and_leave_the_output_alone(void **state)
{
	static const char *const texts[] = { "",     "5",   "m",    "5x",	    "5m1h",
					     "1h1h", "-5m", "1e3s", "99999999999w", "5 m" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct err err;
		int64_t ns = -1;

		assert_int_equal(units_parse_duration(slice_of(texts[i]), &ns, &err), -ERR_INVALID);
		assert_int_equal(ns, -1);
		assert_non_null(strstr(err.message, "expected"));
	}
}

static void sizes_know_both_families_of_prefixes_and_percent(void **state)
{
	uint64_t bytes;
	double percent;

	(void)state;
	assert_int_equal(units_parse_size(slice_of("512MB"), &bytes, &percent, NULL), 0);
	assert_int_equal(bytes, 512000000);
	assert_int_equal(units_parse_size(slice_of("10GiB"), &bytes, &percent, NULL), 0);
	assert_int_equal(bytes, 10ull << 30);
	assert_int_equal(units_parse_size(slice_of("1000"), &bytes, &percent, NULL), 0);
	assert_int_equal(bytes, 1000);
	assert_int_equal(units_parse_size(slice_of("80%"), &bytes, &percent, NULL), 0);
	assert_int_equal(bytes, 0);
	assert_true(percent == 80);
	assert_int_not_equal(units_parse_size(slice_of("80%"), &bytes, NULL, NULL), 0);
	assert_int_not_equal(units_parse_size(slice_of("120%"), &bytes, &percent, NULL), 0);
	assert_int_not_equal(units_parse_size(slice_of("80%"), &bytes, NULL, NULL), 0);
	assert_int_not_equal(units_parse_size(slice_of("12parsecs"), &bytes, &percent, NULL), 0);
}

static void times_are_relative_absolute_or_milliseconds(void **state)
{
	const int64_t now = 1767366245 * CLOCK_NS_PER_S;
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{ "now", 1767366245 * CLOCK_NS_PER_S },
		{ "now-1h", (1767366245 - 3600) * CLOCK_NS_PER_S },
		{ "1h", (1767366245 - 3600) * CLOCK_NS_PER_S },
		{ "2026-01-02T15:04:05Z", 1767366245 * CLOCK_NS_PER_S },
		{ "2026-01-02T16:04:05+01:00", 1767366245 * CLOCK_NS_PER_S },
		{ "1767366245123", 1767366245123 * CLOCK_NS_PER_MS },
		{ "9999-12-31T23:59:59.9Z", UNITS_TIME_MAX_NS },
		{ "0001-01-01T00:00:00Z", UNITS_TIME_MIN_NS },
		{ "9223372036854775807", UNITS_TIME_MAX_NS },
		{ "now-15000w", UNITS_TIME_MIN_NS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ns = -1;

		assert_int_equal(units_parse_time(slice_of(cases[i].text), now, &ns, NULL), 0);
		assert_int_equal(ns, cases[i].ns);
	}
	for (const char *const *text =
		     (const char *const[]){ "yesterday", "now+1h", "2026-01-02", "", "now-",
					    "2026-01-02T15:04:05", NULL };
	     *text; text++)
		assert_int_not_equal(units_parse_time(slice_of(*text), now, &(int64_t){ 0 }, NULL),
				     0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_read_in_all_units),
		cmocka_unit_test(bad_durations_are_refused_and_leave_the_output_alone),
		cmocka_unit_test(sizes_know_both_families_of_prefixes_and_percent),
		cmocka_unit_test(times_are_relative_absolute_or_milliseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
