/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts since the start of a program, of a series whose reports other servers take too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/persist/batch/baseline.h"

static const struct identity heap = { 1, 2 }, stack = { 3, 4 };

/* What the report's one value becomes. */
static enum baseline_outcome apply(struct baselines *baselines, int64_t start_ns, int64_t value,
				   int64_t *ret)
{
	int64_t elapsed_ns = 0;

	*ret = value;
	return baselines_apply(baselines, heap, start_ns, 1000 + start_ns, 1, &stack, 1, ret,
			       &elapsed_ns);
}

static void nothing_is_counted_from_before_another_servers_report(void **state)
{
	struct baselines baselines = { 0 };
	int64_t value;

	(void)state;
	assert_int_equal(apply(&baselines, 10, 100, &value), BASELINE_FIRST);
	assert_int_equal(apply(&baselines, 20, 150, &value), BASELINE_DELTA);
	assert_int_equal(value, 50);

	/* It took the report of 30: what came until then is its to count. */
	baselines_taken_elsewhere(&baselines, heap, 30, 1);
	baselines_check(&baselines);
	assert_int_equal(apply(&baselines, 40, 190, &value), BASELINE_LATE);
	assert_int_equal(apply(&baselines, 50, 200, &value), BASELINE_DELTA);
	assert_int_equal(value, 10);
	baselines_fini(&baselines);
}

static void ones_own_newest_report_is_no_reason_to_stop(void **state)
{
	struct baselines baselines = { 0 };
	int64_t value;

	(void)state;
	assert_int_equal(apply(&baselines, 10, 100, &value), BASELINE_FIRST);
	baselines_taken_elsewhere(&baselines, heap, 10, 1);
	assert_int_equal(apply(&baselines, 20, 130, &value), BASELINE_DELTA);
	assert_int_equal(value, 30);
	baselines_fini(&baselines);
}

/* Also where nothing of the series was seen here: its first report is no first one. */
static void a_series_of_another_server_has_no_first_report_here(void **state)
{
	struct baselines baselines = { 0 };
	int64_t value;

	(void)state;
	baselines_taken_elsewhere(&baselines, heap, 10, 1);
	assert_int_equal(apply(&baselines, 20, 100, &value), BASELINE_LATE);
	assert_int_equal(apply(&baselines, 30, 101, &value), BASELINE_DELTA);
	assert_int_equal(value, 1);
	baselines_fini(&baselines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_counted_from_before_another_servers_report),
		cmocka_unit_test(ones_own_newest_report_is_no_reason_to_stop),
		cmocka_unit_test(a_series_of_another_server_has_no_first_report_here),
	};

	return cmocka_run_group_tests_name("persist_baseline", tests, NULL, NULL);
}
