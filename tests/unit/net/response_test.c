/* SPDX-License-Identifier: Apache-2.0 */
/* What answers pay for: before they are made, when they are copied, and what comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/http/response.h"

#define MAX_BYTES ((size_t)64 << 20)
#define LARGE ((size_t)20 << 20)

static void what_is_paid_for_comes_back(void **state)
{
	struct budget memory = { .max_bytes = (int64_t)MAX_BYTES };
	struct net_response response;

	(void)state;
	response_init(&response, &memory);
	assert_true(net_response_pay(&response, LARGE));
	assert_true(net_response_pay(&response, LARGE / 2));
	assert_int_equal(memory.used_bytes, LARGE);
	assert_true(net_response_pay(&response, LARGE + 10));
	assert_int_equal(memory.used_bytes, LARGE + 10);
	response_fini(&response);
	assert_int_equal(memory.used_bytes, 0);
}

static void large_ones_are_refused_when_others_have_it(void **state)
{
	struct budget memory = { .max_bytes = (int64_t)MAX_BYTES };
	struct net_response large, small;

	(void)state;
	budget_force(&memory, 3 * LARGE);
	response_init(&large, &memory);
	assert_false(net_response_pay(&large, LARGE));
	assert_int_equal(memory.used_bytes, 3 * LARGE);
	budget_give(&memory, 3 * LARGE);
	assert_false(net_response_pay(&large, 1)); /* it stays a refusal */
	response_fini(&large);
	budget_force(&memory, MAX_BYTES);
	response_init(&small, &memory);
	assert_true(net_response_pay(&small, SMALL_ANSWER_BYTES));
	response_fini(&small);
	assert_int_equal(memory.used_bytes, MAX_BYTES);
}

/* Small answers of others do not count; its own, paid before, do not either. */
static void a_lone_one_may_have_more(void **state)
{
	struct budget memory = { .max_bytes = (int64_t)MAX_BYTES };
	struct net_response response, other;

	(void)state;
	budget_force(&memory, MAX_BYTES / SMALL_ANSWERS_SHARE);
	response_init(&response, &memory);
	assert_true(net_response_pay(&response, 2 * MAX_BYTES));
	assert_true(net_response_pay(&response, 3 * MAX_BYTES));
	response_init(&other, &memory);
	assert_false(net_response_pay(&other, 2 * MAX_BYTES));
	response_fini(&other);
	response_fini(&response);
	assert_int_equal(memory.used_bytes, MAX_BYTES / SMALL_ANSWERS_SHARE);
}

static void copies_pay_too(void **state)
{
	struct budget memory = { .max_bytes = 200 << 10 };
	struct net_response from, to[3];

	(void)state;
	response_init(&from, NULL);
	from.status = 203;
	for (int i = 0; i < 100 << 10; i++)
		strbuf_add_byte(&from.body, 'a');
	for (int i = 0; i < 3; i++) {
		response_init(&to[i], &memory);
		net_response_copy(&from, &to[i]);
	}
	assert_int_equal(to[1].status, 203);
	assert_int_equal(to[1].body.len, 100 << 10);
	assert_int_equal(memory.used_bytes, 200 << 10);
	assert_true(to[2].is_refused);
	assert_int_equal(to[2].body.len, 0);
	response_fini(&to[1]);
	response_init(&to[1], &memory);
	net_response_copy(&to[2], &to[1]); /* a refusal is one for those that follow */
	assert_true(to[1].is_refused);
	for (int i = 0; i < 3; i++)
		response_fini(&to[i]);
	response_fini(&from);
	assert_int_equal(memory.used_bytes, 0);
}

static void who_asks_knows_when_others_have_not_read(void **state)
{
	struct budget memory = { .max_bytes = (int64_t)MAX_BYTES };
	struct net_request request = { .answers = &memory };

	(void)state;
	assert_false(net_request_others_read(&request));
	budget_force(&memory, MAX_BYTES / 2);
	assert_true(net_request_others_read(&request));
	request.answers = NULL;
	assert_false(net_request_others_read(&request));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_paid_for_comes_back),
		cmocka_unit_test(large_ones_are_refused_when_others_have_it),
		cmocka_unit_test(a_lone_one_may_have_more),
		cmocka_unit_test(copies_pay_too),
		cmocka_unit_test(who_asks_knows_when_others_have_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
