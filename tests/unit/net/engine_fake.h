/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_fake - a host for one engine without sockets, threads or a real clock: bytes in, bytes
 * out. Submitted requests run when engine_fake_run says so.
 */
#ifndef FIRN_TESTS_ENGINE_FAKE_H
#define FIRN_TESTS_ENGINE_FAKE_H

#include <stdlib.h>

#include "net/http/engine.h"

#define ENGINE_FAKE_BODY_MAX 1000u
#define ENGINE_FAKE_QUEUE_MAX 200u

struct engine_fake {
	struct engine_host host; /* first: submit gets back here */
	struct http_service service;
	struct engine *engine;
	struct exchange *queue[ENGINE_FAKE_QUEUE_MAX];
	size_t queue_count, queue_max;
	struct strbuf pending, out;
};

static inline bool engine_fake_submit(struct engine_host *host, struct exchange *exchange)
{
	struct engine_fake *fake = (struct engine_fake *)host;

	if (fake->queue_count == fake->queue_max)
		return false;
	fake->queue[fake->queue_count++] = exchange;
	return true;
}

static inline void engine_fake_echo(void *context, const struct net_request *request,
				    struct net_response *response)
{
	(void)context;
	response->content_type = "text/plain";
	strbuf_add_slice(&response->body, request->method);
	strbuf_add_byte(&response->body, ' ');
	strbuf_add_slice(&response->body, request->path);
	strbuf_add_byte(&response->body, ' ');
	strbuf_add_slice(&response->body, request->body);
}

static inline void engine_fake_parameter(void *context, const struct net_request *request,
					 struct net_response *response)
{
	struct strbuf value = { 0 };

	(void)context;
	for (size_t n = 0; net_request_parameter(request, "q", n, &value); n++)
		strbuf_addf(&response->body, "[%s]", strbuf_text(&value));
	strbuf_free(&value);
}

/* Pays for more than there is before it makes the rest of its body. */
static inline void engine_fake_pay(void *context, const struct net_request *request,
				   struct net_response *response)
{
	(void)context;
	(void)request;
	strbuf_add_text(&response->body, "begun");
	if (net_response_pay(response, 700 << 10))
		strbuf_add_text(&response->body, ", and paid for");
}

/* A streamed call: counts messages and their bytes, refuses the message "bad". */
struct engine_fake_count {
	size_t messages, bytes;
};

static inline int engine_fake_message(void *context, const struct net_request *request,
				      void **state, struct strbuf *reply, struct err *err)
{
	struct engine_fake_count *count = *state;

	(void)context;
	(void)reply;
	if (slice_is(request->body, "bad"))
		return err_set(err, ERR_INVALID, "a bad message");
	if (!count)
		count = *state = calloc(1, sizeof(*count));
	count->messages++;
	count->bytes += request->body.len;
	return 0;
}

static inline void engine_fake_finish(void *context, const struct net_request *request, void *state,
				      struct net_response *response)
{
	struct engine_fake_count *count = state;

	(void)context;
	(void)request;
	strbuf_addf(&response->body, "%zu messages, %zu bytes", count ? count->messages : 0,
		    count ? count->bytes : 0);
	free(state);
}

static inline void engine_fake_abandon(void *context, void *state)
{
	(void)context;
	free(state);
}

static const struct net_stream engine_fake_stream = { .message = engine_fake_message,
						      .finish = engine_fake_finish,
						      .abandon = engine_fake_abandon };

/* A call that is replied to: each message comes back, "last" ends it, the end says how many. */
static inline int engine_fake_talk(void *context, const struct net_request *request, void **state,
				   struct strbuf *reply, struct err *err)
{
	int code = engine_fake_message(context, request, state, reply, err);

	strbuf_add_slice(reply, request->body);
	return code ? code : slice_is(request->body, "last") ? NET_STREAM_DONE : 0;
}

static inline void engine_fake_end_talk(void *context, const struct net_request *request,
					void *state, struct net_response *response)
{
	struct engine_fake_count *count = state;

	if (count && count->messages > 1)
		engine_fake_finish(context, request, state, response);
	else
		free(state);
}

static const struct net_stream engine_fake_talking = { .message = engine_fake_talk,
						       .finish = engine_fake_end_talk,
						       .replies = true,
						       .abandon = engine_fake_abandon };

/* A watched call: says the word, and again when the test has changed it. */
static char engine_fake_word = 'a';

static inline void engine_fake_say(void *context, const void *state, struct strbuf *out)
{
	(void)context;
	(void)state;
	strbuf_add_byte(out, engine_fake_word);
}

static inline void engine_fake_begin_watch(void *context, const struct net_request *request,
					   void *state, struct net_response *response)
{
	(void)request;
	engine_fake_say(context, state, &response->body);
}

static inline int engine_fake_watched(void *context, const struct net_request *request,
				      void **state, struct strbuf *reply, struct err *err)
{
	int code = engine_fake_message(context, request, state, reply, err);

	return code ? code : NET_STREAM_DONE;
}

static const struct net_stream engine_fake_watch = { .message = engine_fake_watched,
						     .finish = engine_fake_begin_watch,
						     .abandon = engine_fake_abandon,
						     .watch = engine_fake_say };

static const struct net_route engine_fake_routes[] = {
	{ "GET", "/", engine_fake_echo, NULL, 0, NULL, NET_ROLE_NONE, false },
	{ "GET", "/parameter", engine_fake_parameter, NULL, 0, NULL, NET_ROLE_NONE, false },
	{ "GET", "/paid", engine_fake_pay, NULL, 0, NULL, NET_ROLE_NONE, false },
	{ "POST", "/echo", engine_fake_echo, NULL, ENGINE_FAKE_BODY_MAX, NULL, NET_ROLE_NONE,
	  false },
	{ "POST", "/unread", engine_fake_echo, NULL, ENGINE_FAKE_BODY_MAX, NULL, NET_ROLE_NONE,
	  true },
	{ "POST", "/firn.Test/Echo", engine_fake_echo, NULL, ENGINE_FAKE_BODY_MAX, NULL,
	  NET_ROLE_NONE, false },
	{ "POST", "/firn.Test/Count", NULL, NULL, ENGINE_FAKE_BODY_MAX, &engine_fake_stream,
	  NET_ROLE_NONE, false },
	{ "POST", "/firn.Test/Talk", NULL, NULL, ENGINE_FAKE_BODY_MAX, &engine_fake_talking,
	  NET_ROLE_NONE, false },
	{ "POST", "/firn.Test/Watch", NULL, NULL, ENGINE_FAKE_BODY_MAX, &engine_fake_watch,
	  NET_ROLE_NONE, false },
};

static inline void engine_fake_init(struct engine_fake *fake,
				    struct engine *(*make)(struct engine_host *host))
{
	*fake = (struct engine_fake){
		.host = { .service = &fake->service,
			  .peer = SLICE_LITERAL("192.0.2.1:4711"),
			  .now_ns = 1000 * CLOCK_NS_PER_S,
			  .idle_timeout_ns = 60 * CLOCK_NS_PER_S,
			  .submit = engine_fake_submit },
		.service = { .routes = engine_fake_routes,
			     .routes_count =
				     sizeof(engine_fake_routes) / sizeof(engine_fake_routes[0]),
			     .budget = { .max_bytes = 1 << 20 },
			     .answers = { .max_bytes = 1 << 20 } },
		.queue_max = ENGINE_FAKE_QUEUE_MAX,
	};
	fake->service.durations = durations_new(fake->service.routes, fake->service.routes_count);
	fake->engine = make(&fake->host);
}

static inline void engine_fake_free(struct engine_fake *fake)
{
	fake->engine->ops->free(fake->engine);
	for (size_t i = 0; i < fake->queue_count; i++)
		exchange_free(fake->queue[i]);
	durations_free(fake->service.durations);
	if (fake->service.budget.used_bytes)
		abort();
	strbuf_free(&fake->pending);
	strbuf_free(&fake->out);
}

/* Lets the engine take and give all it can without running requests. */
static inline void engine_fake_move(struct engine_fake *fake)
{
	const struct engine_ops *ops = fake->engine->ops;
	size_t taken;

	do {
		struct slice bytes = strbuf_slice(&fake->pending);

		ops->pull(fake->engine, &fake->out, SIZE_MAX);
		taken = bytes.len && !fake->engine->is_done ? ops->feed(fake->engine, bytes) : 0;
		fake->pending.len -= taken;
		if (taken)
			memmove(fake->pending.data, fake->pending.data + taken, fake->pending.len);
	} while (taken);
	ops->pull(fake->engine, &fake->out, SIZE_MAX);
}

/* Runs what was submitted and hands the answers back, until nothing moves. */
static inline void engine_fake_run(struct engine_fake *fake)
{
	engine_fake_move(fake);
	while (fake->queue_count) {
		struct exchange *exchange = fake->queue[0];

		memmove(&fake->queue[0], &fake->queue[1],
			--fake->queue_count * sizeof(fake->queue[0]));
		exchange_run(exchange);
		if (exchange->engine)
			fake->engine->ops->answer(fake->engine, exchange);
		else
			exchange_free(exchange);
		engine_fake_move(fake);
	}
}

static inline void engine_fake_feed(struct engine_fake *fake, struct slice bytes)
{
	strbuf_add_slice(&fake->pending, bytes);
	engine_fake_move(fake);
}

static inline void engine_fake_pass(struct engine_fake *fake, int64_t ns)
{
	fake->host.now_ns += ns;
	fake->engine->ops->tick(fake->engine);
	engine_fake_move(fake);
}

#endif
