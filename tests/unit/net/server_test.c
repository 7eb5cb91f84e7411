/* SPDX-License-Identifier: Apache-2.0 */
/* server and client together: the real thing on a free port, raw sockets where they must be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "codec/archive/compress.h"
#include "net/client/client.h"
#include "net/server.h"

#include "engine_fake.h"

#define BODY_MAX (1u << 20)
#define CALL_NS (300 * CLOCK_NS_PER_S)
#define GRACE_NS (60 * CLOCK_NS_PER_S)
#define THREADS_MAX 256
#define WAIT_MS 10000 /* generous: a wait ends when the thing happens */

/* Lets a test hold a handler and see it from outside. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_entered, is_open, saw_cancel;
};

struct world {
	struct gate gate;
	struct net_route routes[9];
	struct net_server *server;
	struct net_client *client;
	char address[32];
};

static void handle_echo(void *context, const struct net_request *request,
			struct net_response *response)
{
	(void)context;
	strbuf_add_slice(&response->body, request->body);
}

static void handle_text(void *context, const struct net_request *request,
			struct net_response *response)
{
	(void)context;
	(void)request;
	response->content_type = "text/plain";
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&response->body, "line %d\n", i);
	strbuf_add_text(&response->headers, "x-firn: yes\r\nbad\x01: no\r\ncontent-length: 3\r\n");
}

static void handle_big(void *context, const struct net_request *request,
		       struct net_response *response)
{
	size_t len = 20u << 20;

	(void)context;
	(void)request;
	memset(strbuf_reserve(&response->body, len), 'b', len);
	response->body.len = len;
}

static void handle_error(void *context, const struct net_request *request,
			 struct net_response *response)
{
	struct strbuf code = { 0 };
	struct err err;

	(void)context;
	if (net_request_parameter(request, "code", 0, &code))
		err_set(&err, (enum err_code)atoi(strbuf_text(&code)), "it broke");
	else
		err_set(&err, ERR_NO_MEMORY, "100%% \xc3\xa9\n");
	strbuf_free(&code);
	net_response_error(request, response, &err);
}

static void handle_gate(void *context, const struct net_request *request,
			struct net_response *response)
{
	struct gate *gate = context;

	pthread_mutex_lock(&gate->lock);
	gate->is_entered = true;
	pthread_cond_broadcast(&gate->changed);
	while (!gate->is_open && !atomic_load(request->cancelled)) {
		struct timespec soon;

		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += 10000000;
		soon.tv_sec += soon.tv_nsec / 1000000000;
		soon.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&gate->changed, &gate->lock, &soon);
	}
	gate->saw_cancel = atomic_load(request->cancelled);
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
	strbuf_add_text(&response->body, "passed");
}

static void wait_for(struct gate *gate, const bool *condition)
{
	pthread_mutex_lock(&gate->lock);
	while (!*condition)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void open_gate(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->is_open = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

static int authorize(void *context, const struct net_request *request, enum net_role role,
		     bool at_once)
{
	(void)context;
	if (at_once && role == NET_ROLE_QUERY)
		return 0; /* to be asked again */
	if (role == NET_ROLE_ADMIN)
		return net_request_header(request, "authorization").len ? 403 : 401;
	return 200;
}

static int start(void **state)
{
	struct world *world = mem_new(struct world);
	const struct net_route routes[] = {
		{ "GET", "/text", handle_text, NULL, 0, NULL, NET_ROLE_NONE, false },
		{ "GET", "/big", handle_big, NULL, 0, NULL, NET_ROLE_NONE, false },
		{ "GET", "/secret", handle_text, NULL, 0, NULL, NET_ROLE_ADMIN, false },
		{ "*", "/error", handle_error, NULL, BODY_MAX, NULL, NET_ROLE_NONE, false },
		{ "GET", "/gate", handle_gate, &world->gate, 0, NULL, NET_ROLE_NONE, false },
		{ "POST", "/echo", handle_echo, NULL, BODY_MAX, NULL, NET_ROLE_NONE, false },
		{ "POST", "/firn.Test/Echo", handle_echo, NULL, BODY_MAX, NULL, NET_ROLE_NONE,
		  false },
		{ "POST", "/firn.Test/Error", handle_error, NULL, BODY_MAX, NULL, NET_ROLE_NONE,
		  false },
		{ "POST", "/firn.Test/Count", NULL, NULL, BODY_MAX, &engine_fake_stream,
		  NET_ROLE_NONE, false },
	};
	struct net_server_options options = {
		.address = "127.0.0.1:0",
		.routes = world->routes,
		.routes_count = sizeof(routes) / sizeof(routes[0]),
		.workers = 2,
		.connections_max = 20,
		.authorize = authorize,
	};
	struct err err;

	memcpy(world->routes, routes, sizeof(routes));
	pthread_mutex_init(&world->gate.lock, NULL);
	pthread_cond_init(&world->gate.changed, NULL);
	if (net_server_start(&options, &world->server, &err)) {
		print_error("%s\n", err.message);
		return -1;
	}
	snprintf(world->address, sizeof(world->address), "127.0.0.1:%u",
		 net_server_port(world->server));
	assert_int_equal(net_client_new(world->address, NULL, &world->client, NULL), 0);
	*state = world;
	return 0;
}

static int stop(void **state)
{
	struct world *world = *state;

	open_gate(&world->gate);
	net_client_free(world->client);
	net_server_stop(world->server, GRACE_NS);
	free(world);
	return 0;
}

static int dial(const struct world *world)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)net_server_port(world->server)),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads until `until` came, or to the end of the connection when NULL. */
static void hear(int fd, const char *until, struct strbuf *out)
{
	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t len;

		if (until && out->len && strstr(out->data, until))
			return;
		assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
		len = recv(fd, strbuf_reserve(out, 65536), 65536, 0);
		if (len <= 0)
			return;
		out->len += (size_t)len;
		out->data[out->len] = '\0';
	}
}

static struct net_reply call(struct world *world, const char *method, const char *path,
			     struct slice body)
{
	struct net_call request = {
		.method = method,
		.path = path,
		.body = body,
		.timeout_ns = CALL_NS,
		.body_bytes_max = 64u << 20,
	};
	struct net_reply reply;
	struct err err;

	if (net_client_call(world->client, &request, &reply, &err))
		fail_msg("%s %s: %s", method, path, err.message);
	return reply;
}

static int call_grpc(struct world *world, const char *path, struct slice message, bool compress,
		     struct net_reply *ret)
{
	struct net_call request = { .method = "POST",
				    .path = path,
				    .content_type = "application/grpc",
				    .body = message,
				    .grpc = true,
				    .compress = compress,
				    .timeout_ns = CALL_NS,
				    .body_bytes_max = 64u << 20 };
	struct err err = { 0 };
	int code = net_client_call(world->client, &request, ret, &err);

	if (code)
		print_message("%s\n", err.message);
	return code;
}

static void client_gets_answers_over_one_connection(void **state)
{
	struct world *world = *state;

	for (int i = 0; i < 50; i++) {
		struct net_reply reply = call(world, "POST", "/echo", SLICE_LITERAL("hello"));

		assert_int_equal(reply.status, 200);
		assert_int_equal(reply.grpc_status, -1);
		assert_string_equal(reply.content_type, "application/octet-stream");
		assert_string_equal(strbuf_text(&reply.body), "hello");
		strbuf_free(&reply.body);
	}
}

static void large_bodies_come_through_whole(void **state)
{
	struct world *world = *state;
	struct strbuf body = { 0 };
	struct net_reply reply;

	for (size_t i = 0; i < BODY_MAX / 8; i++)
		strbuf_add_u64(&body, i);
	reply = call(world, "POST", "/echo", strbuf_slice(&body));
	assert_int_equal(reply.body.len, body.len);
	assert_memory_equal(reply.body.data, body.data, body.len);
	strbuf_free(&reply.body);
	strbuf_add_byte(&body, 0);
	reply = call(world, "POST", "/echo", strbuf_slice(&body));
	assert_int_equal(reply.status, 413);
	strbuf_free(&reply.body);
	strbuf_free(&body);
	reply = call(world, "GET", "/big", (struct slice){ 0 });
	assert_int_equal(reply.body.len, 20u << 20);
	strbuf_free(&reply.body);
}

static void client_refuses_an_answer_over_its_limit(void **state)
{
	struct world *world = *state;
	struct net_call request = { .method = "GET", .path = "/text", .body_bytes_max = 100 };
	struct net_reply reply;
	struct err err;

	assert_int_equal(net_client_call(world->client, &request, &reply, &err), -ERR_LIMIT);
	request.body_bytes_max = 1 << 20;
	assert_int_equal(net_client_call(world->client, &request, &reply, &err), 0);
	strbuf_free(&reply.body);
}

static int next_piece(void *context, struct strbuf *out, struct err *err)
{
	unsigned *left = context;

	if (!*left)
		return 0;
	--*left;
	if (*left == 1000000)
		return err_set(err, ERR_IO, "nothing left to read");
	memset(strbuf_reserve(out, BODY_MAX), 'x', BODY_MAX);
	out->len = *left == 500000 ? 3 : BODY_MAX;
	if (out->len == 3)
		memcpy(out->data, "bad", 3);
	return 1;
}

static int call_count(struct world *world, unsigned *left, struct net_reply *reply)
{
	const struct net_call call = {
		.method = "POST",
		.path = "/firn.Test/Count",
		.content_type = "application/grpc",
		.grpc = true,
		.next = next_piece,
		.next_context = left,
		.timeout_ns = CALL_NS,
		.body_bytes_max = BODY_MAX,
	};
	struct err err;

	return net_client_call(world->client, &call, reply, &err);
}

static void streams_go_up_in_pieces(void **state)
{
	struct world *world = *state;
	struct net_reply reply;
	unsigned left = 100;
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "100 messages, %zu bytes", 100 * (size_t)BODY_MAX);
	assert_int_equal(call_count(world, &left, &reply), 0);
	assert_int_equal(reply.grpc_status, 0);
	assert_string_equal(strbuf_text(&reply.body), wanted);
	strbuf_free(&reply.body);
	left = 500002; /* refused long before the end: the client stops */
	assert_int_equal(call_count(world, &left, &reply), 0);
	assert_int_equal(reply.grpc_status, 3);
	assert_string_equal(reply.grpc_message, "a bad message");
	assert_true(left > 0);
	strbuf_free(&reply.body);
	left = 1000010; /* the client's own source fails */
	assert_int_equal(call_count(world, &left, &reply), -ERR_IO);
	left = 1;
	assert_int_equal(call_count(world, &left, &reply), 0); /* and the next call works */
	assert_int_equal(reply.grpc_status, 0);
	strbuf_free(&reply.body);
}

static void grpc_calls_end_with_their_status(void **state)
{
	struct world *world = *state;
	struct strbuf big = { 0 };
	struct net_reply reply;

	for (int compress = 0; compress < 2; compress++) {
		assert_int_equal(
			call_grpc(world, "/firn.Test/Echo", SLICE_LITERAL("hi"), compress, &reply),
			0);
		assert_int_equal(reply.status, 200);
		assert_int_equal(reply.grpc_status, 0);
		assert_string_equal(strbuf_text(&reply.body), "hi");
		strbuf_free(&reply.body);
	}
	assert_int_equal(call_grpc(world, "/firn.Test/Echo", (struct slice){ 0 }, false, &reply),
			 0);
	assert_int_equal(reply.grpc_status, 0);
	assert_int_equal(reply.body.len, 0);
	strbuf_free(&reply.body);
	assert_int_equal(call_grpc(world, "/firn.Test/None", SLICE_LITERAL("hi"), false, &reply),
			 0);
	assert_int_equal(reply.grpc_status, 12);
	strbuf_free(&reply.body);
	assert_int_equal(call_grpc(world, "/firn.Test/Error", SLICE_LITERAL("hi"), false, &reply),
			 0);
	assert_int_equal(reply.grpc_status, 8);
	assert_string_equal(reply.grpc_message, "100% \xc3\xa9\n");
	assert_int_equal(reply.retry_after_ns, CLOCK_NS_PER_S);
	strbuf_free(&reply.body);
	memset(strbuf_reserve(&big, BODY_MAX + 1), 0, BODY_MAX + 1);
	big.len = BODY_MAX + 1;
	for (int compress = 0; compress < 2; compress++) {
		assert_int_equal(
			call_grpc(world, "/firn.Test/Echo", strbuf_slice(&big), compress, &reply),
			0);
		assert_int_equal(reply.grpc_status, 8);
		assert_int_equal(reply.retry_after_ns, 0); /* trying again does not help */
		strbuf_free(&reply.body);
	}
	strbuf_free(&big);
}

static void errors_have_their_http_statuses(void **state)
{
	static const struct {
		enum err_code code;
		int status, retry_s;
	} cases[] = {
		{ ERR_INVALID, 400, 0 },   { ERR_NOT_FOUND, 404, 0 },	{ ERR_EXISTS, 409, 0 },
		{ ERR_LIMIT, 413, 0 },	   { ERR_IO, 500, 0 },		{ ERR_CORRUPT, 500, 0 },
		{ ERR_NO_SPACE, 507, 30 }, { ERR_READ_ONLY, 503, 30 },	{ ERR_BUSY, 503, 1 },
		{ ERR_DENIED, 403, 0 },	   { ERR_UNAVAILABLE, 503, 1 }, { ERR_CANCELLED, 499, 0 },
		{ ERR_DEADLINE, 504, 0 },  { ERR_NO_MEMORY, 429, 1 },	{ ERR_UNSUPPORTED, 501, 0 },
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[32], body[64];
		struct net_reply reply;

		snprintf(path, sizeof(path), "/error?code=%d", (int)cases[i].code);
		snprintf(body, sizeof(body), "{\"error\":\"it broke\",\"code\":\"%s\"}",
			 err_code_name(cases[i].code));
		reply = call(world, "GET", path, (struct slice){ 0 });
		assert_int_equal(reply.status, cases[i].status);
		assert_int_equal(reply.retry_after_ns, cases[i].retry_s * CLOCK_NS_PER_S);
		assert_string_equal(reply.content_type, "application/json");
		assert_string_equal(strbuf_text(&reply.body), body);
		strbuf_free(&reply.body);
	}
}

static void authorize_is_asked(void **state)
{
	struct world *world = *state;
	struct net_call request = { .method = "GET",
				    .path = "/secret",
				    .headers = "authorization: Basic x\r\n",
				    .body_bytes_max = 1000 };
	struct net_reply reply = call(world, "GET", "/secret", (struct slice){ 0 });

	assert_int_equal(reply.status, 401);
	strbuf_free(&reply.body);
	assert_int_equal(net_client_call(world->client, &request, &reply, NULL), 0);
	assert_int_equal(reply.status, 403);
	strbuf_free(&reply.body);
}

static void text_is_compressed_for_those_who_take_it(void **state)
{
	struct world *world = *state;
	struct net_call request = { .method = "GET",
				    .path = "/text",
				    .headers = "accept-encoding: br, gzip\r\n",
				    .body_bytes_max = 1 << 20 };
	struct net_reply plain = call(world, "GET", "/text", (struct slice){ 0 });
	struct strbuf unpacked = { 0 };
	struct net_reply packed;

	assert_int_equal(net_client_call(world->client, &request, &packed, NULL), 0);
	assert_true(packed.body.len < plain.body.len / 2);
	assert_int_equal(compress_gunzip(strbuf_slice(&packed.body), 1 << 20, &unpacked, NULL), 0);
	assert_string_equal(strbuf_text(&unpacked), strbuf_text(&plain.body));
	strbuf_free(&unpacked);
	strbuf_free(&packed.body);
	strbuf_free(&plain.body);
}

static void handlers_cannot_break_the_framing(void **state)
{
	struct world *world = *state;
	struct strbuf answer = { 0 };
	int fd = dial(world);

	say(fd, "HEAD /text HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	hear(fd, NULL, &answer);
	assert_non_null(strstr(strbuf_text(&answer), "\r\nx-firn: yes\r\n"));
	assert_null(strstr(strbuf_text(&answer), "bad"));
	assert_null(strstr(strbuf_text(&answer), "content-length: 3\r\n"));
	assert_string_equal(answer.data + answer.len - 4, "\r\n\r\n");
	strbuf_free(&answer);
	close(fd);
}

static void a_split_preface_is_still_http2(void **state)
{
	struct world *world = *state;
	struct strbuf answer = { 0 };
	int fd = dial(world);

	say(fd, "P");
	say(fd, "RI * HTTP/2.0\r\n\r\nS");
	say(fd, "M\r\n\r\n");
	assert_int_equal(send(fd, "\0\0\0\4\0\0\0\0\0", 9, MSG_NOSIGNAL), 9); /* SETTINGS */
	while (answer.len < 9)
		hear(fd, "", &answer);
	assert_int_equal(answer.data[3], 4);
	strbuf_free(&answer);
	close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct world *world = *state;
	struct strbuf answer = { 0 };
	const char *first, *second;
	int fd = dial(world);

	say(fd, "GET /text HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
		"GET /secret HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	hear(fd, NULL, &answer);
	first = strstr(strbuf_text(&answer), "HTTP/1.1 200 OK");
	assert_non_null(first);
	second = strstr(first, "HTTP/1.1 404 Not Found");
	assert_non_null(second);
	assert_non_null(strstr(second, "HTTP/1.1 401 Unauthorized"));
	strbuf_free(&answer);
	close(fd);
}

static void a_client_that_still_sends_gets_the_refusal(void **state)
{
	struct world *world = *state;
	struct strbuf answer = { 0 };
	static char body[8u << 20];
	size_t sent = 0;
	int fd = dial(world);

	say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8388608\r\n\r\n");
	while (sent < sizeof(body)) { /* all of it, before looking for an answer */
		ssize_t len = send(fd, body + sent, sizeof(body) - sent, MSG_NOSIGNAL);

		assert_true(len > 0);
		sent += (size_t)len;
	}
	hear(fd, NULL, &answer);
	assert_memory_equal(strbuf_text(&answer), "HTTP/1.1 413", 12);
	strbuf_free(&answer);
	close(fd);
}

static void a_lost_connection_cancels_its_request(void **state)
{
	struct world *world = *state;
	int fd = dial(world);

	say(fd, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(&world->gate, &world->gate.is_entered);
	close(fd);
	wait_for(&world->gate, &world->gate.saw_cancel);
}

/* From an address of this host's, as another peer would. */
static int dial_from(const struct world *world, uint32_t from)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)net_server_port(world->server)),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = { htonl(from) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void ask(int fd, const char *path, const char *until)
{
	struct strbuf text = { 0 };

	strbuf_addf(&text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	say(fd, strbuf_text(&text));
	strbuf_clear(&text);
	if (until)
		hear(fd, until, &text);
	strbuf_free(&text);
}

static bool is_turned_away(int fd)
{
	struct strbuf answer = { 0 };
	bool is;

	hear(fd, NULL, &answer);
	is = answer.len > 12 && !memcmp(answer.data, "HTTP/1.1 503", 12);
	strbuf_free(&answer);
	return is;
}

#define PEER_SHARE 15 /* of the 20 connections of `start` */

static void idle_connections_make_room_for_new_ones(void **state)
{
	struct world *world = *state;
	struct strbuf answer = { 0 };
	int fds[3 * PEER_SHARE];
	size_t count = sizeof(fds) / sizeof(fds[0]);

	for (size_t i = 0; i < count; i++) { /* some say nothing at all, some half of a head */
		fds[i] = dial(world);
		if (i % 3 == 0)
			ask(fds[i], "/nothing", "refused");
		else if (i % 3 == 1)
			say(fds[i], "GET /nothing HTT");
	}
	ask(fds[count - 3], "/nothing", "refused"); /* among the last, so it is still there */
	hear(fds[0], NULL, &answer);		    /* the first have gone: ends */
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	strbuf_free(&answer);
}

static void busy_connections_stay_and_leave_room_for_other_peers(void **state)
{
	struct world *world = *state;
	int fds[20], fd;

	for (size_t i = 0; i < PEER_SHARE; i++) {
		fds[i] = dial(world);
		ask(fds[i], "/gate", NULL);
	}
	for (size_t i = PEER_SHARE; i < 20; i++) { /* when they are answered, all above was read */
		fds[i] = dial_from(world, INADDR_LOOPBACK + 1);
		ask(fds[i], "/nothing", "refused");
	}
	fd = dial(world);
	assert_true(is_turned_away(fd));
	close(fd);
	fd = dial_from(world, INADDR_LOOPBACK + 2); /* one that is idle goes */
	ask(fd, "/nothing", "refused");
	close(fd);
	for (size_t i = 0; i < 20; i++)
		close(fds[i]);
}

static void a_taken_port_names_its_holder(void **state)
{
	struct world *world = *state;
	struct net_server_options options = { .address = world->address };
	struct net_server *second = NULL;
	char expected[128];
	struct err err;

	assert_int_equal(net_server_start(&options, &second, &err), -ERR_BUSY);
	snprintf(expected, sizeof(expected),
		 "listen on \"%s\": address already in use by process %d (", world->address,
		 (int)getpid());
	assert_memory_equal(err.message, expected, strlen(expected));
	assert_null(second);
}

static size_t threads(long ret[THREADS_MAX])
{
	DIR *tasks = opendir("/proc/self/task");
	size_t count = 0;

	assert_non_null(tasks);
	for (const struct dirent *entry; count < THREADS_MAX && (entry = readdir(tasks));)
		if (entry->d_name[0] != '.')
			ret[count++] = atol(entry->d_name);
	closedir(tasks);
	return count;
}

/* That have come since: one that was joined is listed for a moment longer. */
static size_t threads_since(const long *before, size_t count)
{
	long now[THREADS_MAX];
	size_t now_count = threads(now), added = now_count;

	for (size_t i = 0; i < now_count; i++)
		for (size_t j = 0; j < count; j++)
			added -= before[j] == now[i];
	return added;
}

/* How often the loop has gone to sleep, of the one server. */
static long loop_sleeps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	long sleeps = -1;

	assert_non_null(tasks);
	for (const struct dirent *entry; (entry = readdir(tasks));) {
		static const char key[] = "\nvoluntary_ctxt_switches:";
		char path[300], text[4096];
		const char *found;
		size_t len;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		len = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
		text[len] = 0;
		found = strstr(text, key);
		if (found && strstr(text, "Name:\tfirn-http-loop\n"))
			sleeps = atol(found + strlen(key));
	}
	closedir(tasks);
	return sleeps;
}

static void a_server_without_connections_is_not_woken(void **state)
{
	struct world *world = *state;
	struct strbuf answer = { 0 };
	int fd = dial(world);
	long before;

	say(fd, "GET /text HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	hear(fd, "line 999", &answer);
	strbuf_free(&answer);
	close(fd);
	for (int i = 0; i < WAIT_MS / 600; i++) {
		before = loop_sleeps();
		assert_true(before >= 0);
		poll(NULL, 0, 600);
		if (loop_sleeps() == before)
			return;
	}
	fail_msg("its thread wakes all the time");
}

static void only_servers_with_queries_have_threads_for_them(void **state)
{
	const enum net_role roles[] = { NET_ROLE_PROBE, NET_ROLE_QUERY };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct net_route route = { "GET", "/text", handle_text, NULL,
						 0,	NULL,	 roles[i],    false };
		const struct net_server_options options = {
			.address = "127.0.0.1:0", .routes = &route, .routes_count = 1, .workers = 2
		};
		struct net_server *server;
		long before[THREADS_MAX];
		size_t count = threads(before);
		struct err err;

		assert_int_equal(net_server_start(&options, &server, &err), 0);
		assert_int_equal(threads_since(before, count), 3 + i * NET_SERVER_ASKERS);
		net_server_stop(server, 0);
	}
}

static void *stop_server(void *context)
{
	struct world *world = context;

	net_server_stop(world->server, GRACE_NS);
	world->server = NULL;
	return NULL;
}

static void stopping_finishes_what_is_under_way(void **state)
{
	struct world *world = *state;
	struct strbuf answer = { 0 };
	int busy = dial(world), idle = dial(world);
	pthread_t stopper;

	say(idle, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	hear(idle, "refused", &answer);
	say(busy, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(&world->gate, &world->gate.is_entered);
	assert_int_equal(pthread_create(&stopper, NULL, stop_server, world), 0);
	hear(idle, NULL, &answer); /* ends at once */
	open_gate(&world->gate);
	strbuf_clear(&answer);
	hear(busy, NULL, &answer);
	assert_non_null(strstr(strbuf_text(&answer), "passed"));
	pthread_join(stopper, NULL);
	strbuf_free(&answer);
	close(idle);
	close(busy);
}

static void stopping_cancels_what_outlasts_the_grace(void **state)
{
	struct world *world = *state;
	int fd = dial(world);

	say(fd, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(&world->gate, &world->gate.is_entered);
	net_server_stop(world->server, 0);
	world->server = NULL;
	assert_true(world->gate.saw_cancel);
	close(fd);
}

static void client_names_the_address_that_refuses(void **state)
{
	struct world *world = *state;
	struct net_call request = { .method = "GET", .path = "/", .body_bytes_max = 1000 };
	struct net_reply reply;
	char expected[128];
	struct err err;

	net_server_stop(world->server, GRACE_NS);
	world->server = NULL;
	assert_int_equal(net_client_call(world->client, &request, &reply, &err), -ERR_UNAVAILABLE);
	snprintf(expected, sizeof(expected), "connect to \"%s\": Connection refused",
		 world->address);
	assert_string_equal(err.message, expected);
}

static bool is_entered(struct gate *gate)
{
	bool is;

	pthread_mutex_lock(&gate->lock);
	is = gate->is_entered;
	pthread_mutex_unlock(&gate->lock);
	return is;
}

static void client_reconnects_and_gives_up_in_time(void **state)
{
	struct world *world = *state;
	struct net_call request = { .method = "GET",
				    .path = "/gate",
				    .timeout_ns = 50 * CLOCK_NS_PER_MS,
				    .body_bytes_max = 1000 };
	struct net_reply reply;
	struct err err;

	/* On a busy host the time may be over before the handler has begun: then with more. */
	for (; !is_entered(&world->gate); request.timeout_ns *= 2)
		assert_int_equal(net_client_call(world->client, &request, &reply, &err),
				 -ERR_DEADLINE);
	wait_for(&world->gate, &world->gate.saw_cancel);
	reply = call(world, "GET", "/text", (struct slice){ 0 });
	assert_int_equal(reply.status, 200);
	strbuf_free(&reply.body);
}

static void the_server_counts(void **state)
{
	struct world *world = *state;
	struct net_reply reply = call(world, "GET", "/nothing", (struct slice){ 0 });
	struct strbuf text = { 0 };

	strbuf_free(&reply.body);
	for (int i = 0; i < 2; i++) {
		reply = call(world, "GET", "/text", (struct slice){ 0 });
		strbuf_free(&reply.body);
	}
	metrics_render(&text);
	assert_non_null(
		strstr(strbuf_text(&text),
		       "firn_net_handler_seconds_count{method=\"GET\",path=\"/text\"} 2\n"));
	assert_non_null(
		strstr(strbuf_text(&text), "{method=\"GET\",path=\"/text\",le=\"30\"} 2\n"));
	assert_null(strstr(strbuf_text(&text), "path=\"/nothing\""));
	assert_non_null(strstr(strbuf_text(&text), "firn_net_refused_total{reason=\"no_route\"}"));
	assert_non_null(strstr(strbuf_text(&text),
			       "firn_net_requests_total{protocol=\"http2\",class=\"4xx\"}"));
	strbuf_free(&text);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(client_gets_answers_over_one_connection),
		WITH_SERVER(large_bodies_come_through_whole),
		WITH_SERVER(client_refuses_an_answer_over_its_limit),
		WITH_SERVER(grpc_calls_end_with_their_status),
		WITH_SERVER(streams_go_up_in_pieces),
		WITH_SERVER(errors_have_their_http_statuses),
		WITH_SERVER(authorize_is_asked),
		WITH_SERVER(text_is_compressed_for_those_who_take_it),
		WITH_SERVER(handlers_cannot_break_the_framing),
		WITH_SERVER(a_split_preface_is_still_http2),
		WITH_SERVER(pipelined_requests_are_answered_in_order),
		WITH_SERVER(a_client_that_still_sends_gets_the_refusal),
		WITH_SERVER(a_lost_connection_cancels_its_request),
		WITH_SERVER(idle_connections_make_room_for_new_ones),
		WITH_SERVER(busy_connections_stay_and_leave_room_for_other_peers),
		WITH_SERVER(a_taken_port_names_its_holder),
		WITH_SERVER(a_server_without_connections_is_not_woken),
		cmocka_unit_test(only_servers_with_queries_have_threads_for_them),
		WITH_SERVER(stopping_finishes_what_is_under_way),
		WITH_SERVER(stopping_cancels_what_outlasts_the_grace),
		WITH_SERVER(client_names_the_address_that_refuses),
		WITH_SERVER(client_reconnects_and_gives_up_in_time),
		WITH_SERVER(the_server_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
