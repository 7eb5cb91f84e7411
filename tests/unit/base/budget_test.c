/* SPDX-License-Identifier: Apache-2.0 */
/* budget: who pays, and who is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/budget.h"

static void a_parent_pays_too(void **state)
{
	struct budget process = { .max_bytes = 100 };
	struct budget one = { .max_bytes = 80, .parent = &process };
	struct budget other = { .max_bytes = 80, .parent = &process };

	(void)state;
	assert_true(budget_take(&one, 60));
	assert_true(budget_take(&other, 40));
	assert_int_equal(process.used_bytes, 100);
	assert_false(budget_take(&one, 1));
	assert_int_equal(one.used_bytes, 60); /* what it paid before its parent refused came back */
	budget_give(&other, 40);
	assert_true(budget_take(&one, 20));
	assert_false(budget_take(&one, 1));
	budget_give(&one, 80);
	assert_int_equal(process.used_bytes, 0);
}

static void a_refusal_says_whose_it_is(void **state)
{
	struct budget process = { .max_bytes = 100 };
	struct budget one = { .max_bytes = 80, .parent = &process };
	struct err err;

	(void)state;
	assert_false(budget_take(&one, 81));
	assert_int_equal(budget_fail(&one, 81, "decode", &err), -ERR_LIMIT);
	budget_force(&process, 90);
	assert_false(budget_take(&one, 20));
	assert_int_equal(budget_fail(&one, 20, "decode", &err), -ERR_NO_MEMORY);
}

static void force_is_noticed(void **state)
{
	struct budget process = { .max_bytes = 100 };
	struct budget one = { .max_bytes = 80, .parent = &process };

	(void)state;
	budget_force(&one, 70);
	assert_false(budget_is_over(&one));
	assert_true(budget_is_tight(&one));
	assert_false(budget_is_tight(&process));
	budget_force(&process, 31);
	assert_true(budget_is_over(&one));
	budget_give(&process, 31);
	budget_force(&one, 11);
	assert_true(budget_is_over(&one));
	assert_false(budget_is_over(&process));
	assert_false(budget_is_over(NULL));
	assert_true(budget_take(NULL, SIZE_MAX));
}

static void one_may_have_more_than_there_is_for_all(void **state)
{
	struct budget process = { .max_bytes = 100 };
	struct budget one = { .max_bytes = 80, .parent = &process };

	(void)state;
	budget_force(&one, 11);
	assert_false(budget_take_alone(&one, 200, 10));
	assert_int_equal(one.used_bytes, 11);
	assert_true(budget_take_alone(&one, 200, 11));
	assert_int_equal(one.used_bytes, 211);
	assert_int_equal(process.used_bytes, 211);
	assert_false(budget_take_alone(&one, 1, 11));
	budget_give(&one, 211);
	assert_int_equal(process.used_bytes, 0);
	assert_true(budget_take_alone(NULL, SIZE_MAX, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parent_pays_too),
		cmocka_unit_test(a_refusal_says_whose_it_is),
		cmocka_unit_test(force_is_noticed),
		cmocka_unit_test(one_may_have_more_than_there_is_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
