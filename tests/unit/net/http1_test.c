/* SPDX-License-Identifier: Apache-2.0 */
/* http1: what is taken, what is refused and how, whole and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine_fake.h"

#define HOST "Host: x\r\n"

/* "200 404 close": the statuses of all answers in order, and whether the connection ended. */
static void summarise(const struct engine_fake *fake, struct strbuf *ret)
{
	const char *at = strbuf_text(&fake->out);

	strbuf_clear(ret);
	while ((at = strstr(at, "HTTP/1.1 "))) {
		at += strlen("HTTP/1.1 ");
		strbuf_addf(ret, "%.3s ", at);
	}
	strbuf_add_text(ret, fake->engine->is_done ? "close" : "open");
}

#define HUNDRED                                                                                    \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"890123456789"
#define THOUSAND_AND_ONE                                                                           \
	HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED "x"

static const struct {
	const char *request;
	const char *outcome;
} cases[] = {
	{ "GET / HTTP/1.1\r\n" HOST "\r\n", "200 open" },
	{ "HEAD / HTTP/1.1\r\n" HOST "\r\n", "200 open" },
	{ "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "200 close" },
	{ "GET / HTTP/1.0\r\n\r\n", "200 close" },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200 open" },
	{ "GET http://x/ HTTP/1.1\r\n" HOST "\r\n", "200 open" },
	{ "GET / HTTP/1.1\r\n" HOST "\r\nGET /nothing HTTP/1.1\r\n" HOST "\r\n", "200 404 open" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "200 open" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "200 open" },
	{ "POST /echo HTTP/1.1\r\n" HOST "\r\n", "200 open" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	  "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
	  "200 200 open" },
	{ "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
	  "HTTP2-Settings: AAMAAABkAAQ\r\n\r\n",
	  "200 open" },
	/* A body that its route ignores: any coding, within its bound. */
	{ "POST /unread HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Encoding: br\r\n\r\nabc"
	  "GET / HTTP/1.1\r\n" HOST "\r\n",
	  "200 200 open" },
	{ "POST /unread HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", "413 close" },
	{ "POST /unread HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	  "3e9\r\n" THOUSAND_AND_ONE "\r\n0\r\n\r\n",
	  "413 close" },
	/* Not here. */
	{ "DELETE / HTTP/1.1\r\n" HOST "\r\n", "405 open" },
	{ "GET /echo HTTP/1.1\r\n" HOST "\r\n", "405 open" },
	{ "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "400 open" },
	{ "CONNECT x:80 HTTP/1.1\r\n" HOST "\r\n", "400 open" },
	{ "GET /%zz HTTP/1.1\r\n" HOST "\r\n", "400 open" },
	{ "GET /%00 HTTP/1.1\r\n" HOST "\r\n", "400 open" },
	{ "GET /parameter?q=%4 HTTP/1.1\r\n" HOST "\r\n", "400 open" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Encoding: br\r\n\r\nabc",
	  "415 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Encoding: gzip\r\n\r\nabc",
	  "400 open" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nExpect: magic\r\n\r\nabc",
	  "417 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", "413 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n",
	  "413 close" },
	{ "GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx", "413 close" },
	{ "GET / HTTP/2.0\r\n" HOST "\r\n", "505 close" },
	{ "GET / HTTP/1.2\r\n" HOST "\r\n", "505 close" },
	{ "POST /firn.Test/Echo HTTP/1.1\r\n" HOST
	  "Content-Type: application/grpc\r\nContent-Length: 0\r\n\r\n",
	  "505 open" },
	/* Framing that two readers could take differently. */
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "0\r\n\r\n",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
	  "0\r\n\r\n",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3, 3\r\n\r\nabc", "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\nabc", "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: -3\r\n\r\nabc", "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0x3\r\n\r\nabc", "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\nabc",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length : 3\r\n\r\nabc", "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n"
	  "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	  "400 close" },
	{ "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	  "fffffffffffffffff\r\n\r\n",
	  "400 close" },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
	  "400 close" },
	{ "GET / HTTP/1.1\r\n" HOST "Folded: a\r\n b\r\n\r\n", "400 close" },
	{ "GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n 5\r\n\r\n", "400 close" },
	{ "GET / HTTP/1.1\r\n" HOST "Content-Length:\r\n\t5\r\n\r\n", "400 close" },
	{ "GET / HTTP/1.1\r\n" HOST "Bad\x01Name: a\r\n\r\n", "400 close" },
	{ "GET / HTTP/1.1\r\n" HOST "Name: a\x01\r\n\r\n", "400 close" },
	{ "GET / HTTP/1.1\r\n" HOST HOST "\r\n", "400 close" },
	{ "GET / HTTP/1.1\r\n\r\n", "400 close" },
	{ "GET / HTTP/1.1\n"
	  "Host: x\n\n",
	  "400 close" },
	{ "GET / HTTP/1.1\rHost: x\r\r", "505 close" },
	{ "GET /a b HTTP/1.1\r\n" HOST "\r\n", "400 close" },
	{ "FETCH / HTTP/1.1\r\n" HOST "\r\n", "400 close" },
	{ "hello\r\n\r\n", "400 close" },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static void check_outcome(const struct engine_fake *fake, size_t i, const char *how)
{
	struct strbuf outcome = { 0 };

	summarise(fake, &outcome);
	if (strcmp(strbuf_text(&outcome), cases[i].outcome) != 0)
		fail_msg("%s: %s gave \"%s\", expected \"%s\"\n%s", how, cases[i].request,
			 strbuf_text(&outcome), cases[i].outcome, strbuf_text(&fake->out));
	strbuf_free(&outcome);
}

static void answers_each_request_as_it_deserves(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct engine_fake fake;

		engine_fake_init(&fake, http1_new);
		engine_fake_feed(&fake, slice_of(cases[i].request));
		engine_fake_run(&fake);
		check_outcome(&fake, i, "whole");
		engine_fake_free(&fake);
	}
}

static void does_not_care_how_the_bytes_are_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct engine_fake fake;

		engine_fake_init(&fake, http1_new);
		for (const char *at = cases[i].request; *at; at++) {
			engine_fake_feed(&fake, slice_from(at, 1));
			engine_fake_run(&fake);
		}
		check_outcome(&fake, i, "byte by byte");
		engine_fake_free(&fake);
	}
}

static void hands_the_body_and_the_path_to_the_handler(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(&fake, SLICE_LITERAL("POST /%65cho HTTP/1.1\r\nhost: x\r\n"
					      "transfer-encoding: chunked\r\n\r\n"
					      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"));
	engine_fake_run(&fake);
	assert_non_null(strstr(strbuf_text(&fake.out), "\r\n\r\nPOST /echo abcde"));
	strbuf_clear(&fake.out);
	engine_fake_feed(&fake, SLICE_LITERAL("GET /parameter?a=1&q=x+y%21&%71=&q HTTP/1.1\r\n"
					      "Host: x\r\n\r\n"));
	engine_fake_run(&fake);
	assert_non_null(strstr(strbuf_text(&fake.out), "\r\n\r\n[x y!][][]"));
	engine_fake_free(&fake);
}

static void sends_no_body_for_head(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(&fake, SLICE_LITERAL("HEAD / HTTP/1.1\r\n" HOST "\r\n"));
	engine_fake_run(&fake);
	assert_non_null(strstr(strbuf_text(&fake.out), "content-length: 7\r\n"));
	assert_string_equal(fake.out.data + fake.out.len - 4, "\r\n\r\n");
	engine_fake_free(&fake);
}

static void asks_for_the_body_that_the_client_holds_back(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(&fake, SLICE_LITERAL("POST /echo HTTP/1.1\r\n" HOST
					      "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"));
	assert_string_equal(strbuf_text(&fake.out), "HTTP/1.1 100 Continue\r\n\r\n");
	engine_fake_feed(&fake, SLICE_LITERAL("abc"));
	engine_fake_run(&fake);
	assert_non_null(strstr(strbuf_text(&fake.out), "HTTP/1.1 200 OK"));
	engine_fake_free(&fake);
}

static void takes_one_pipelined_request_at_a_time(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	for (int i = 0; i < 3; i++)
		engine_fake_feed(&fake, SLICE_LITERAL("GET / HTTP/1.1\r\n" HOST "\r\n"));
	assert_int_equal(fake.queue_count, 1);
	engine_fake_run(&fake);
	assert_int_equal(fake.pending.len, 0);
	engine_fake_free(&fake);
}

static void refuses_heads_over_their_bounds(void **state)
{
	static const struct {
		const char *before;
		size_t filler;
		const char *status;
	} big[] = {
		{ "GET /", HEAD_TARGET_BYTES_MAX + 1, "HTTP/1.1 414" },
		{ "GET / HTTP/1.1\r\nA: ", HEAD_BYTES_MAX + 1, "HTTP/1.1 431" },
		{ "GET / HTTP/1.1\r\nA", HEAD_BYTES_MAX + 1, "HTTP/1.1 431" },
		{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: ",
		  HEAD_BYTES_MAX + 1, "HTTP/1.1 431" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(big) / sizeof(big[0]); i++) {
		struct engine_fake fake;

		engine_fake_init(&fake, http1_new);
		engine_fake_feed(&fake, slice_of(big[i].before));
		for (size_t j = 0; j < big[i].filler; j++)
			engine_fake_feed(&fake, SLICE_LITERAL("a"));
		engine_fake_run(&fake);
		assert_memory_equal(strbuf_text(&fake.out), big[i].status, 12);
		assert_true(fake.engine->is_done);
		engine_fake_free(&fake);
	}
}

static void refuses_many_small_headers(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(&fake, SLICE_LITERAL("GET / HTTP/1.1\r\n" HOST));
	for (size_t i = 0; i < HEAD_BYTES_MAX / HEAD_FIELD_BYTES; i++)
		engine_fake_feed(&fake, SLICE_LITERAL("a:\r\n"));
	assert_memory_equal(strbuf_text(&fake.out), "HTTP/1.1 431", 12);
	engine_fake_free(&fake);
}

static void refuses_a_body_as_soon_as_it_is_too_large(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(&fake, SLICE_LITERAL("POST /echo HTTP/1.1\r\n" HOST
					      "Transfer-Encoding: chunked\r\n\r\nffffff\r\n"));
	for (size_t i = 0; i < ENGINE_FAKE_BODY_MAX; i++)
		engine_fake_feed(&fake, SLICE_LITERAL("a"));
	assert_int_equal(fake.out.len, 0);
	engine_fake_feed(&fake, SLICE_LITERAL("a"));
	assert_memory_equal(strbuf_text(&fake.out), "HTTP/1.1 413", 12);
	assert_true(fake.engine->is_done);
	assert_true(fake.engine->lingers);
	engine_fake_free(&fake);
}

static void ends_what_is_late(void **state)
{
	static const struct {
		const char *bytes;
		int64_t seconds;
		const char *outcome;
	} late[] = {
		{ "", 9, "open" }, /* nothing asked yet */
		{ "", 11, "close" },
		{ "GET /none HTTP/1.1\r\n" HOST "\r\n", 59, "404 open" },
		{ "GET /none HTTP/1.1\r\n" HOST "\r\n", 61, "404 close" },
		{ "GET /", 9, "open" },
		{ "GET /", 11, "408 close" },
		{ "GET / HTTP/1.1\r\n" HOST, 11, "408 close" },
		{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc", 29, "open" },
		{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc", 31, "408 close" },
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", 3600,
		  "open" }, /* the handler has all its time */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		struct strbuf outcome = { 0 };
		struct engine_fake fake;

		engine_fake_init(&fake, http1_new);
		engine_fake_feed(&fake, slice_of(late[i].bytes));
		engine_fake_pass(&fake, late[i].seconds * CLOCK_NS_PER_S);
		summarise(&fake, &outcome);
		assert_string_equal(strbuf_text(&outcome), late[i].outcome);
		strbuf_free(&outcome);
		engine_fake_free(&fake);
	}
}

static void ends_a_body_that_drips(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(
		&fake, SLICE_LITERAL("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 900\r\n\r\n"));
	for (int i = 0; i < 31 && !fake.out.len; i++) {
		engine_fake_feed(&fake, SLICE_LITERAL("a"));
		engine_fake_pass(&fake, CLOCK_NS_PER_S);
	}
	assert_memory_equal(strbuf_text(&fake.out), "HTTP/1.1 408", 12);
	engine_fake_free(&fake);
}

static void lets_bodies_wait_for_the_budget(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	budget_force(&fake.service.budget, 900 << 10);
	engine_fake_feed(&fake,
			 SLICE_LITERAL("POST /echo HTTP/1.1\r\n" HOST
				       "Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc"));
	assert_true(fake.engine->is_parked);
	assert_int_equal(fake.pending.len, 3);
	assert_int_equal(fake.out.len, 0);
	budget_give(&fake.service.budget, 900 << 10);
	engine_fake_pass(&fake, CLOCK_NS_PER_S);
	engine_fake_run(&fake);
	assert_non_null(
		strstr(strbuf_text(&fake.out), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"));
	engine_fake_free(&fake);
}

static void refuses_what_others_have_the_memory_for(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	budget_force(&fake.service.answers, 900 << 10);
	engine_fake_feed(&fake, SLICE_LITERAL("GET /paid HTTP/1.1\r\n" HOST "\r\n"));
	engine_fake_run(&fake);
	assert_memory_equal(strbuf_text(&fake.out), "HTTP/1.1 503", 12);
	assert_non_null(strstr(strbuf_text(&fake.out), "\r\nretry-after: 1\r\n"));
	assert_null(strstr(strbuf_text(&fake.out), "begun"));
	assert_int_equal(fake.service.answers.used_bytes, 900 << 10);
	budget_give(&fake.service.answers, 900 << 10);
	engine_fake_feed(&fake, SLICE_LITERAL("GET /paid HTTP/1.1\r\n" HOST "\r\n"));
	engine_fake_run(&fake);
	assert_non_null(strstr(strbuf_text(&fake.out), "begun, and paid for"));
	assert_int_equal(fake.service.answers.used_bytes, 0);
	engine_fake_free(&fake);
}

static void refuses_when_the_budget_stays_empty(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	budget_force(&fake.service.budget, 900 << 10);
	engine_fake_feed(&fake, SLICE_LITERAL("POST /echo HTTP/1.1\r\n" HOST
					      "Content-Length: 3\r\n\r\nabc"));
	engine_fake_pass(&fake, 11 * CLOCK_NS_PER_S);
	assert_memory_equal(strbuf_text(&fake.out), "HTTP/1.1 503", 12);
	assert_non_null(strstr(strbuf_text(&fake.out), "\r\nretry-after: 1\r\n"));
	budget_give(&fake.service.budget, 900 << 10);
	engine_fake_free(&fake);
}

static void refuses_when_the_queue_is_full(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	fake.queue_max = 0;
	engine_fake_feed(&fake, SLICE_LITERAL("GET / HTTP/1.1\r\n" HOST "\r\n"));
	assert_memory_equal(strbuf_text(&fake.out), "HTTP/1.1 503", 12);
	assert_false(fake.engine->is_done);
	engine_fake_free(&fake);
}

static void tells_the_handler_that_the_client_has_gone(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(&fake, SLICE_LITERAL("GET / HTTP/1.1\r\n" HOST "\r\n"));
	assert_false(*fake.queue[0]->request.cancelled);
	fake.engine->ops->end(fake.engine);
	assert_true(*fake.queue[0]->request.cancelled);
	engine_fake_run(&fake); /* it may have closed its sending side only */
	assert_memory_equal(strbuf_text(&fake.out), "HTTP/1.1 200", 12);
	assert_true(fake.engine->is_done);
	engine_fake_free(&fake);
}

static void finishes_the_request_under_way_when_stopped(void **state)
{
	struct engine_fake idle, busy;

	(void)state;
	engine_fake_init(&idle, http1_new);
	idle.engine->ops->stop(idle.engine);
	assert_true(idle.engine->is_done);
	engine_fake_free(&idle);

	engine_fake_init(&busy, http1_new);
	engine_fake_feed(&busy, SLICE_LITERAL("GET / HTTP/1.1\r\n" HOST "\r\n"));
	busy.engine->ops->stop(busy.engine);
	assert_false(busy.engine->is_done);
	engine_fake_run(&busy);
	assert_non_null(strstr(strbuf_text(&busy.out), "connection: close\r\n"));
	assert_true(busy.engine->is_done);
	engine_fake_free(&busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_request_as_it_deserves),
		cmocka_unit_test(does_not_care_how_the_bytes_are_cut),
		cmocka_unit_test(hands_the_body_and_the_path_to_the_handler),
		cmocka_unit_test(sends_no_body_for_head),
		cmocka_unit_test(asks_for_the_body_that_the_client_holds_back),
		cmocka_unit_test(takes_one_pipelined_request_at_a_time),
		cmocka_unit_test(refuses_heads_over_their_bounds),
		cmocka_unit_test(refuses_many_small_headers),
		cmocka_unit_test(refuses_a_body_as_soon_as_it_is_too_large),
		cmocka_unit_test(ends_what_is_late),
		cmocka_unit_test(ends_a_body_that_drips),
		cmocka_unit_test(lets_bodies_wait_for_the_budget),
		cmocka_unit_test(refuses_what_others_have_the_memory_for),
		cmocka_unit_test(refuses_when_the_budget_stays_empty),
		cmocka_unit_test(refuses_when_the_queue_is_full),
		cmocka_unit_test(tells_the_handler_that_the_client_has_gone),
		cmocka_unit_test(finishes_the_request_under_way_when_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
