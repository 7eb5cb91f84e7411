/* SPDX-License-Identifier: Apache-2.0 */
/* route: which of several routes wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/http/route.h"

static const struct net_route routes[] = {
	{ .method = "GET", .path = "*" },	   /* 0 */
	{ .method = "GET", .path = "/api/*" },	   /* 1 */
	{ .method = "GET", .path = "/api/v1/*" },  /* 2 */
	{ .method = "GET", .path = "/api/v1/x" },  /* 3 */
	{ .method = "*", .path = "/any" },	   /* 4 */
	{ .method = "POST", .path = "/any" },	   /* 5 */
	{ .method = "POST", .path = "/p.S/Call" }, /* 6 */
};

#define COUNT (sizeof(routes) / sizeof(routes[0]))

static void the_closest_route_wins(void **state)
{
	static const struct {
		const char *method, *path;
		int route; /* -1: the path has other methods */
	} cases[] = {
		{ "GET", "/", 0 },	    { "GET", "/api", 0 },
		{ "GET", "/api/", 1 },	    { "GET", "/api/v1/", 2 },
		{ "GET", "/api/v1/x", 3 },  { "HEAD", "/api/v1/x", 3 },
		{ "GET", "/api/v1/xy", 2 }, { "DELETE", "/any", 4 },
		{ "POST", "/any", 5 },	    { "GET", "/any", 4 },
		{ "POST", "/p.S/Call", 6 }, { "POST", "/p.S/Other", -1 },
		{ "get", "/", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct route_match match = route_find(routes, COUNT, slice_of(cases[i].method),
						      slice_of(cases[i].path));

		assert_true(match.path_exists);
		assert_ptr_equal(match.route, cases[i].route < 0 ? NULL : &routes[cases[i].route]);
	}
	assert_false(route_find(&routes[1], 1, slice_of("GET"), slice_of("/x")).path_exists);
}

static void methods_of_a_path_are_listed_once(void **state)
{
	struct strbuf methods = { 0 };

	(void)state;
	route_add_methods(routes, COUNT, slice_of("/api/v1/x"), &methods);
	assert_string_equal(strbuf_text(&methods), "GET, HEAD");
	strbuf_clear(&methods);
	route_add_methods(routes, COUNT, slice_of("/p.S/Call"), &methods);
	assert_string_equal(strbuf_text(&methods), "GET, HEAD, POST");
	strbuf_free(&methods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_closest_route_wins),
		cmocka_unit_test(methods_of_a_path_are_listed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
