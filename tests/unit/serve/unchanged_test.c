/* SPDX-License-Identifier: Apache-2.0 */
/* unchanged: when a client already has an answer. */
#include "server/serve/api/unchanged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct slice etag_of(const struct net_response *response)
{
	struct slice rest = strbuf_slice(&response->headers), line;

	assert_true(rest.len > strlen("etag: \r\n"));
	line = slice_cut(slice_tail(rest, strlen("etag: ")), '\r', &rest);
	return line;
}

/* Answers `body` to a client that has `known` ("" for nothing). */
static struct net_response answered(const char *body, int status, struct slice known)
{
	const struct net_header header = { slice_of("if-none-match"), known };
	const struct net_request request = { .headers = &header, .headers_count = 1 };
	struct net_response response = { .status = status };

	strbuf_add_text(&response.body, body);
	unchanged_check(&request, &response);
	return response;
}

static void forget(struct net_response *response)
{
	strbuf_free(&response->body);
	strbuf_free(&response->headers);
}

/* The status of `second` for a client that was given `first`. */
static int status_after(const char *first, const char *second)
{
	struct net_response had = answered(first, 200, slice_of(""));
	struct net_response now = answered(second, 200, etag_of(&had));
	int status = now.status;

	assert_int_equal(had.status, 200);
	assert_int_equal(now.body.len == 0, status == 304);
	forget(&had);
	forget(&now);
	return status;
}

static void the_same_answer_is_not_sent_twice(void **state)
{
	(void)state;
	assert_int_equal(status_after("{\"total\":7}", "{\"total\":7}"), 304);
	assert_int_equal(status_after("{\"total\":7}", "{\"total\":8}"), 200);
}

static void a_range_that_moves_is_no_change(void **state)
{
	static const char early[] = "{\"from_ms\":1000,\"to_ms\":2000,\"total\":7,\"x\":[1,2]}";

	(void)state;
	assert_int_equal(status_after(early, "{\"from_ms\":1500,\"to_ms\":2500,\"total\":7,"
					     "\"x\":[1,2]}"),
			 304);
	assert_int_equal(status_after(early, "{\"from_ms\":1000,\"to_ms\":2000,\"total\":8,"
					     "\"x\":[1,2]}"),
			 200);
	assert_int_equal(status_after(early, "{\"from_ms\":1000,\"to_ms\":2000,\"total\":7,"
					     "\"x\":[1,3]}"),
			 200);
}

static void errors_are_always_said(void **state)
{
	struct net_response error = answered("{\"error\":\"x\"}", 503, slice_of(""));

	(void)state;
	assert_int_equal(error.headers.len, 0);
	assert_int_equal(error.status, 503);
	forget(&error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_answer_is_not_sent_twice),
		cmocka_unit_test(a_range_that_moves_is_no_change),
		cmocka_unit_test(errors_are_always_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
