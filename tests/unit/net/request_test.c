/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers ask of a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/server.h"

static void parameters_are_found_by_their_names(void **state)
{
	struct net_request request = { .query = slice_of("a=1&b%20c=x+y&a=2&d") };
	struct strbuf out = { 0 };

	(void)state;
	assert_true(net_request_parameter(&request, "a", 0, &out));
	assert_string_equal(strbuf_text(&out), "1");
	assert_true(net_request_parameter(&request, "a", 1, &out));
	assert_string_equal(strbuf_text(&out), "2");
	assert_true(net_request_parameter(&request, "b c", 0, &out));
	assert_string_equal(strbuf_text(&out), "x y");
	assert_true(net_request_parameter(&request, "d", 0, &out));
	assert_string_equal(strbuf_text(&out), "");
	strbuf_free(&out);
}

static void an_absent_parameter_leaves_nothing_behind(void **state)
{
	static const struct {
		const char *query, *name;
		size_t n;
	} cases[] = {
		{ "", "a", 0 },
		{ "other=value", "a", 0 },
		{ "a=1&other=value", "a", 1 },
		{ "x&long-name=3&last", "a", 0 },
		{ "a=half%2", "a", 0 },
	};
	struct strbuf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct net_request request = { .query = slice_of(cases[i].query) };

		strbuf_clear(&out);
		strbuf_add_text(&out, "before");
		assert_false(net_request_parameter(&request, cases[i].name, cases[i].n, &out));
		assert_string_equal(strbuf_text(&out), "");
	}
	strbuf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_found_by_their_names),
		cmocka_unit_test(an_absent_parameter_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
