/* SPDX-License-Identifier: Apache-2.0 */
/* fetch and answer: addresses that are none, paths escaped, answers that are cut, endless or no
 * answers. */
#include "net/client/fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/client/answer.h"

static void addresses_are_checked(void **state)
{
	static const char *const good[] = { "http://a", "https://a:1/b?c", "http://[::1]:8002/",
					    "https://debuginfod.example.org/" };
	static const char *const bad[] = { "",
					   "a:80",
					   "ftp://a/",
					   "http://",
					   "http:///x",
					   "http://a b/",
					   "http://a:b/",
					   "http://u:p@a/",
					   "http://a:70000/",
					   "http://\xc3\xa9/" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (fetch_check_url(good[i], &err))
			fail_msg("%s", err.message);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (fetch_check_url(bad[i], &err) != -ERR_INVALID)
			fail_msg("\"%s\" is taken", bad[i]);
}

static void paths_are_escaped(void **state)
{
	struct strbuf url = { 0 };

	(void)state;
	fetch_add_path(&url, SLICE_LITERAL("/usr/include/c++/a b/../#?%\xc3\xa9\r\n.h"));
	assert_string_equal(url.data, "/usr/include/c++/a%20b/../%23%3F%25%C3%A9%0D%0A.h");
	strbuf_free(&url);
}

static int take(void *context, struct slice bytes, struct err *err)
{
	(void)err;
	strbuf_add_slice(context, bytes);
	return 0;
}

/* Reads the text byte by byte; the body, or the code of the error. */
static int read_answer(const char *text, struct answer *answer, struct strbuf *body)
{
	static struct answer_sink sink;
	struct err err;
	int rc = 0;

	sink = (struct answer_sink){ .take = take, .context = body, .bytes_max = 10 };
	strbuf_clear(body);
	answer_begin(answer, &sink);
	for (const char *at = text; !rc && !answer->is_over && *at; at++)
		rc = answer_add(answer, slice_from(at, 1), &err);
	answer_free(answer);
	return rc;
}

static void answers_are_read(void **state)
{
	static const struct {
		const char *text;
		int code, status;
		bool is_over;
		const char *body;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!", 0, 200, true, "hello" },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n2\r\nhe\r\n1\r\ny\r\n0\r\n\r\n",
		  0, 200, true, "hey" },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 0,
		  200, true, "x" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 0, 200, false, "hel" },
		{ "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", 0, 404, true, "" },
		{ "HTTP/1.1 404 Not Found\r\n\r\nuntil the end", 0, 404, true, "" },
		{ "HTTP/1.1 200 OK\r\n\r\nuntil the end", -ERR_UNAVAILABLE, 200, false, "" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", -ERR_LIMIT, 200, false, "" },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n",
		  -ERR_LIMIT, 200, false, "1234567890" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		  -ERR_UNAVAILABLE, 0, false, "" },
		{ "SSH-2.0-OpenSSH\r\n", -ERR_UNAVAILABLE, 0, false, "" },
	};
	struct strbuf body = { 0 };
	struct answer answer;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int code = read_answer(cases[i].text, &answer, &body);

		if (code != cases[i].code || answer.status != cases[i].status ||
		    answer.is_over != cases[i].is_over ||
		    strcmp(strbuf_text(&body), cases[i].body) != 0)
			fail_msg("%s: %d, status %d, \"%s\"", cases[i].text, code, answer.status,
				 strbuf_text(&body));
	}
	strbuf_free(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_checked),
		cmocka_unit_test(paths_are_escaped),
		cmocka_unit_test(answers_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
