/* SPDX-License-Identifier: Apache-2.0 */
/* What token servers answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote/access/oauth2.h"

static void gives(const char *answer, const char *value, int64_t lasts_ns)
{
	struct strbuf got = { 0 };
	int64_t got_ns = -1;
	struct err err;

	assert_int_equal(oauth2_read_answer(slice_of(answer), &got, &got_ns, &err), 0);
	assert_string_equal(strbuf_text(&got), value);
	assert_int_equal(got_ns, lasts_ns);
	strbuf_free(&got);
}

static void tokens_are_read(void **state)
{
	(void)state;
	gives("{\"access_token\":\"a.b\",\"token_type\":\"bearer\",\"expires_in\":60}",
	      "Bearer a.b", 60 * CLOCK_NS_PER_S);
	gives("{\"access_token\":\"a\",\"token_type\":\"MAC\",\"expires_in\":\"1.5\"}", "MAC a",
	      CLOCK_NS_PER_S * 3 / 2);
	gives("{\"access_token\":\"a\"}", "Bearer a", 0);
	gives("{\"access_token\":\"a\",\"expires_in\":-1}", "Bearer a", 0);
	gives("{\"access_token\":\"a\",\"expires_in\":1e300}", "Bearer a", 3600 * CLOCK_NS_PER_S);
}

static void what_is_none_is_told(void **state)
{
	static const char *const wrong[] = { "",
					     "[]",
					     "nothing",
					     "{\"error\":\"invalid_client\"}",
					     "{\"access_token\":7}",
					     "{\"access_token\":\"\"}",
					     "{\"access_token\":\"a\\r\\nx: y\"}",
					     "{\"access_token\":\"a\",\"token_type\":\"b\\n\"}" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct strbuf got = { 0 };
		int64_t lasts_ns = 0;
		struct err err = { 0 };

		assert_int_equal(oauth2_read_answer(slice_of(wrong[i]), &got, &lasts_ns, &err),
				 -ERR_INVALID);
		assert_true(err.message[0]);
		assert_int_equal(got.len, 0);
		strbuf_free(&got);
	}
}

/* A token server that lets `silent` requests wait, and answers the next one. */
struct server {
	int fd, silent;
	char url[64];
	pthread_t thread;
};

static void *serve(void *context)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n"
				     "{\"access_token\":\"a\"}";
	const struct server *server = context;
	char request[4096];
	int held[8];

	for (int i = 0; i <= server->silent; i++)
		held[i] = accept(server->fd, NULL, NULL);
	if (recv(held[server->silent], request, sizeof(request), 0) > 0)
		send(held[server->silent], answer, strlen(answer), MSG_NOSIGNAL);
	for (int i = 0; i <= server->silent; i++)
		close(held[i]);
	return NULL;
}

static void begin_server(struct server *server, int silent)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	server->silent = silent;
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(server->fd, 8), 0);
	assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u/", ntohs(address.sin_port));
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* The result for a caller who has so much time. */
static int ask_within(const struct server *server, int64_t within_ns)
{
	const struct http_oauth2_config config = { .client_id = SLICE_LITERAL("me"),
						   .client_secret = SLICE_LITERAL("secret"),
						   .token_url = slice_of(server->url) };
	struct strbuf token = { 0 };
	struct err err;
	int rc = oauth2_add_token(&config, clock_monotonic_ns() + within_ns, NULL, &token, &err);

	if (!rc)
		assert_string_equal(strbuf_text(&token), "Bearer a");
	strbuf_free(&token);
	return rc;
}

/* That one had too little time says nothing to those who have more; to the others it does. */
static void a_short_deadline_is_no_failure_for_others(void **state)
{
	struct server server;

	(void)state;
	begin_server(&server, 1);
	assert_int_equal(ask_within(&server, CLOCK_NS_PER_S), -ERR_DEADLINE);
	for (int i = 0; i < 3; i++) /* without another request, which would have an answer */
		assert_int_equal(ask_within(&server, 1100 * CLOCK_NS_PER_MS), -ERR_DEADLINE);
	assert_int_equal(ask_within(&server, 60 * CLOCK_NS_PER_S), 0);
	assert_int_equal(ask_within(&server, 500 * CLOCK_NS_PER_MS), 0);
	pthread_join(server.thread, NULL);
	close(server.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_read),
		cmocka_unit_test(what_is_none_is_told),
		cmocka_unit_test(a_short_deadline_is_no_failure_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
