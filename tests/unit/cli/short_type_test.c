/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a profile type stands for the one type that begins so; others are told. */
#include "cli/short_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char both[] = "{\"types\":[{\"type\":\"on_cpu:samples:count:cpu:nanoseconds:delta\"},"
			   "{\"type\":\"memory:inuse_space:bytes:space:bytes\"},"
			   "{\"type\":\"memory:alloc_space:bytes:space:bytes:delta\"}]}";

static void assert_becomes(const char *types, const char *selector, const char *want)
{
	struct err err = { 0 };
	char *whole = NULL;

	assert_int_equal(short_type_find(slice_of(types), selector, &whole, &err), 0);
	assert_string_equal(whole, want);
	free(whole);
}

static void assert_fails(const char *types, const char *selector, const char *part)
{
	struct err err = { 0 };
	char *whole = NULL;

	assert_int_equal(short_type_find(slice_of(types), selector, &whole, &err), -ERR_INVALID);
	assert_null(whole);
	assert_non_null(strstr(err.message, part));
}

static void the_start_of_a_type_is_enough(void **state)
{
	(void)state;
	assert_becomes(both, "on_cpu", "on_cpu:samples:count:cpu:nanoseconds:delta");
	assert_becomes(both, "on_cpu{comm=\"a:b:c:d:e\"}",
		       "on_cpu:samples:count:cpu:nanoseconds:delta{comm=\"a:b:c:d:e\"}");
	assert_becomes(both, "memory:inuse_space{a=\"b\"}",
		       "memory:inuse_space:bytes:space:bytes{a=\"b\"}");
}

static void a_single_type_needs_no_name(void **state)
{
	(void)state;
	assert_becomes("{\"types\":[{\"type\":\"a:b:c:d:e\"}]}", "{x=\"y\"}", "a:b:c:d:e{x=\"y\"}");
}

static void what_is_not_clear_is_told(void **state)
{
	(void)state;
	assert_fails(both, "memory", "say which");
	assert_fails(both, "{comm=\"x\"}", "say which");
	assert_fails(both, "on_c", "there is on_cpu:samples");
	assert_fails("{\"types\":[]}", "on_cpu", "no profiles");
	assert_fails("{\"types\":3}", "on_cpu", "no profiles");
	assert_fails("{\"types\":[{\"type\":3},4]}", "on_cpu", "no profiles");
	assert_fails("no JSON", "on_cpu", "JSON");
}

static void a_whole_type_is_known(void **state)
{
	(void)state;
	assert_true(short_type_is_whole("a:b:c:d:e{x=\"y\"}"));
	assert_true(short_type_is_whole("a:b:c:d:e:delta"));
	assert_false(short_type_is_whole("a:b{x=\"c:d:e:f\"}"));
	assert_false(short_type_is_whole(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_start_of_a_type_is_enough),
		cmocka_unit_test(a_single_type_needs_no_name),
		cmocka_unit_test(what_is_not_clear_is_told),
		cmocka_unit_test(a_whole_type_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
