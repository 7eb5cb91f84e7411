/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of unknown code are there once, bounded, and handed over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/runtime/names/unknown_code.h"

static bool is_odd(const void *context, uint64_t address)
{
	(void)context;
	return address % 2;
}

static void test_each_is_there_once(void **state)
{
	struct unknown_code code = { 0 };
	uint64_t *taken;
	size_t count;

	(void)state;
	unknown_code_add(&code, 4);
	unknown_code_add(&code, 7);
	unknown_code_add(&code, 4);
	assert_int_equal(code.count, 2);
	unknown_code_sift(&code, is_odd, NULL);
	taken = unknown_code_take(&code, &count);
	assert_int_equal(count, 1);
	assert_int_equal(taken[0], 4);
	free(taken);
	assert_null(unknown_code_take(&code, &count));
	assert_int_equal(count, 0);
}

static void test_is_bounded(void **state)
{
	struct unknown_code code = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 2 * UNKNOWN_CODE_MAX; i++)
		unknown_code_add(&code, i);
	assert_int_equal(code.count, UNKNOWN_CODE_MAX);
	assert_int_equal(code.items[UNKNOWN_CODE_MAX - 1], UNKNOWN_CODE_MAX - 1);
	unknown_code_free(&code);
	assert_int_equal(code.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_there_once),
		cmocka_unit_test(test_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
