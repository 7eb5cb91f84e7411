/* SPDX-License-Identifier: Apache-2.0 */
/* http2: the engine against nghttp2's own client, in memory, with a clock that tests move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "engine_fake.h"

#define STREAMS_MAX 2000

struct seen {
	int status;
	int grpc_status; /* -1: none */
	size_t body_bytes;
	bool is_closed;
	uint32_t close_code;
};

struct peer {
	struct engine_fake fake;
	nghttp2_session *session;
	struct seen streams[STREAMS_MAX];
	bool got_goaway, got_continue;
	size_t body_left; /* to send; the body never ends when hold_end */
	bool hold_end;
	struct strbuf text; /* to send before body_left */
	struct strbuf got;  /* of all bodies */
};

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *context)
{
	struct peer *peer = context;
	struct seen *seen = &peer->streams[frame->hd.stream_id];
	uint64_t number = 0;

	(void)session;
	(void)flags;
	if (!slice_parse_u64(slice_from(value, value_len), &number))
		number = 0;
	if (slice_is(slice_from(name, name_len), ":status")) {
		peer->got_continue |= number == 100;
		seen->status = (int)number;
	} else if (slice_is(slice_from(name, name_len), "grpc-status")) {
		seen->grpc_status = (int)number;
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t len, void *context)
{
	struct peer *peer = context;

	(void)session;
	(void)flags;
	strbuf_add(&peer->got, data, len);
	peer->streams[stream].body_bytes += len;
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct peer *peer = context;

	(void)session;
	peer->streams[stream].is_closed = true;
	peer->streams[stream].close_code = code;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct peer *peer = context;

	(void)session;
	peer->got_goaway |= frame->hd.type == NGHTTP2_GOAWAY;
	return 0;
}

static void peer_init(struct peer *peer)
{
	nghttp2_session_callbacks *callbacks;

	*peer = (struct peer){ 0 };
	for (size_t i = 0; i < STREAMS_MAX; i++)
		peer->streams[i].grpc_status = -1;
	engine_fake_init(&peer->fake, http2_new);
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_client_new(&peer->session, callbacks, peer);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, NULL, 0);
}

static void peer_free(struct peer *peer)
{
	nghttp2_session_del(peer->session);
	strbuf_free(&peer->text);
	strbuf_free(&peer->got);
	engine_fake_free(&peer->fake);
}

/* Bytes both ways until both are quiet. */
static void exchange_bytes(struct peer *peer)
{
	bool moved = true;

	while (moved) {
		const uint8_t *data;
		ssize_t len;

		moved = false;
		while ((len = nghttp2_session_mem_send(peer->session, &data)) > 0) {
			engine_fake_feed(&peer->fake, slice_from(data, (size_t)len));
			moved = true;
		}
		engine_fake_move(&peer->fake);
		if (peer->fake.out.len) {
			(void)nghttp2_session_mem_recv(
				peer->session, (uint8_t *)peer->fake.out.data, peer->fake.out.len);
			strbuf_clear(&peer->fake.out);
			moved = true;
		}
	}
}

static void run(struct peer *peer)
{
	exchange_bytes(peer);
	engine_fake_run(&peer->fake);
	exchange_bytes(peer);
}

static void pass(struct peer *peer, int64_t seconds)
{
	engine_fake_pass(&peer->fake, seconds * CLOCK_NS_PER_S);
	exchange_bytes(peer);
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t length,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct peer *peer = source->ptr;
	size_t len = peer->body_left < length ? peer->body_left : length;

	(void)session;
	(void)stream;
	(void)context;
	if (peer->text.len) {
		len = peer->text.len < length ? peer->text.len : length;
		memcpy(to, peer->text.data, len);
		peer->text.len -= len;
		memmove(peer->text.data, peer->text.data + len, peer->text.len);
		if (!peer->text.len && !peer->hold_end)
			*flags |= NGHTTP2_DATA_FLAG_EOF;
		return (ssize_t)len;
	}
	if (!len && peer->hold_end)
		return NGHTTP2_ERR_DEFERRED;
	memset(to, 'x', len);
	peer->body_left -= len;
	if (!peer->body_left && !peer->hold_end)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

#define FIELD(name, value)                                                                         \
	{                                                                                          \
		(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), strlen(name),         \
			strlen(value), 0                                                           \
	}

static int32_t request(struct peer *peer, const char *method, const char *path, const char *name,
		       const char *value)
{
	const nghttp2_nv fields[] = { FIELD(":method", method), FIELD(":scheme", "http"),
				      FIELD(":path", path), FIELD(":authority", "x"),
				      FIELD(name, value) };
	const nghttp2_data_provider body = { { .ptr = peer }, read_body };
	bool has_body = peer->body_left || peer->hold_end || peer->text.len;

	return nghttp2_submit_request(peer->session, NULL, fields, 5, has_body ? &body : NULL,
				      NULL);
}

static void requests_are_answered_in_any_order(void **state)
{
	struct peer peer;
	int32_t first, second;

	(void)state;
	peer_init(&peer);
	first = request(&peer, "GET", "/", "a", "b");
	second = request(&peer, "GET", "/nothing", "a", "b");
	exchange_bytes(&peer);
	assert_int_equal(peer.streams[second].status, 404);
	assert_false(peer.streams[first].is_closed);
	run(&peer);
	assert_int_equal(peer.streams[first].status, 200);
	assert_int_equal(peer.streams[first].body_bytes, 6);
	assert_true(peer.streams[first].is_closed);
	peer_free(&peer);
}

static void windows_open_for_what_was_stored(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	for (int i = 0; i < 20; i++) { /* far more than the connection's first window */
		peer.body_left = 900;
		stream = request(&peer, "POST", "/echo", "a", "b");
		run(&peer);
		assert_int_equal(peer.streams[stream].status, 200);
	}
	for (int i = 0; i < 20; i++) {
		peer.body_left = 400000; /* refused, dropped, and still no window is lost */
		stream = request(&peer, "POST", "/echo", "a", "b");
		run(&peer);
		assert_int_equal(peer.streams[stream].status, 413);
		assert_int_equal(peer.body_left, 0);
		assert_true(peer.streams[stream].is_closed);
	}
	peer_free(&peer);
}

static void an_early_answer_is_followed_by_a_reset_only_later(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	peer.body_left = 2000;
	peer.hold_end = true;
	stream = request(&peer, "POST", "/echo", "a", "b");
	run(&peer);
	assert_int_equal(peer.streams[stream].status, 413);
	assert_false(peer.streams[stream].is_closed);
	pass(&peer, 6);
	assert_true(peer.streams[stream].is_closed);
	assert_int_equal(peer.streams[stream].close_code, NGHTTP2_NO_ERROR);
	peer_free(&peer);
}

static void a_stalled_body_is_refused(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	peer.body_left = 10;
	peer.hold_end = true;
	stream = request(&peer, "POST", "/echo", "a", "b");
	exchange_bytes(&peer);
	pass(&peer, 29);
	assert_int_equal(peer.streams[stream].status, 0);
	pass(&peer, 2);
	assert_int_equal(peer.streams[stream].status, 408);
	peer_free(&peer);
}

static void a_parked_body_goes_on_when_there_is_budget(void **state)
{
	struct peer peer;
	int32_t stream, refused;

	(void)state;
	peer_init(&peer);
	budget_force(&peer.fake.service.budget, 900 << 10);
	peer.body_left = 10;
	peer.hold_end = true;
	stream = request(&peer, "POST", "/echo", "a", "b");
	exchange_bytes(&peer);
	assert_true(peer.fake.engine->is_parked);
	pass(&peer, 1);
	assert_true(peer.fake.engine->is_parked);
	budget_give(&peer.fake.service.budget, 900 << 10);
	pass(&peer, 1);
	assert_false(peer.fake.engine->is_parked);
	assert_int_equal(peer.streams[stream].status, 0);
	budget_force(&peer.fake.service.budget, 900 << 10);
	refused = request(&peer, "POST", "/echo", "a", "b");
	exchange_bytes(&peer);
	pass(&peer, 11);
	assert_int_equal(peer.streams[refused].status, 503);
	budget_give(&peer.fake.service.budget, 900 << 10);
	peer_free(&peer);
}

static void a_reset_cancels_the_request(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	stream = request(&peer, "GET", "/", "a", "b");
	exchange_bytes(&peer);
	assert_false(*peer.fake.queue[0]->request.cancelled);
	nghttp2_submit_rst_stream(peer.session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
	exchange_bytes(&peer);
	assert_true(*peer.fake.queue[0]->request.cancelled);
	run(&peer);
	assert_int_equal(peer.streams[stream].status, 0);
	peer_free(&peer);
}

static void reset_requests(struct peer *peer, int count)
{
	for (int i = 0; i < count && !peer->got_goaway; i++) {
		int32_t stream = request(peer, "GET", "/", "a", "b");

		exchange_bytes(peer);
		nghttp2_submit_rst_stream(peer->session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
		exchange_bytes(peer);
	}
}

static void rapid_resets_end_the_connection(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer);
	reset_requests(&peer, 190);
	assert_false(peer.got_goaway); /* up to here it might be an honest, nervous client */
	assert_int_equal(peer.fake.queue_count, 190);
	run(&peer);
	reset_requests(&peer, 500);
	assert_true(peer.got_goaway);
	assert_true(peer.fake.queue_count < 200);
	peer_free(&peer);
}

/* As one read: the engine has no chance to send anything in between. */
static void resets_of_one_read_end_the_connection(void **state)
{
	struct strbuf wire = { 0 };
	struct peer peer;
	const uint8_t *data;
	ssize_t len;

	(void)state;
	peer_init(&peer);
	exchange_bytes(&peer);
	for (int i = 0; i < 900; i++) {
		int32_t stream = request(&peer, "GET", "/", "a", "b");

		while ((len = nghttp2_session_mem_send(peer.session, &data)) > 0)
			strbuf_add(&wire, data, (size_t)len);
		nghttp2_submit_rst_stream(peer.session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
		while ((len = nghttp2_session_mem_send(peer.session, &data)) > 0)
			strbuf_add(&wire, data, (size_t)len);
	}
	engine_fake_feed(&peer.fake, strbuf_slice(&wire));
	exchange_bytes(&peer);
	assert_true(peer.got_goaway && peer.fake.engine->is_done);
	assert_in_range(peer.fake.queue_count, 190, 210);
	strbuf_free(&wire);
	peer_free(&peer);
}

static bool ends_after_pings(struct peer *peer, int count)
{
	for (int i = 0; i < count && !peer->fake.engine->is_done; i++) {
		nghttp2_submit_ping(peer->session, NGHTTP2_FLAG_NONE, NULL);
		exchange_bytes(peer);
	}
	return peer->fake.engine->is_done;
}

static void frames_that_ask_nothing_end_the_connection(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer);
	assert_false(ends_after_pings(&peer, 190));
	pass(&peer, 5); /* an honest client's keep-alive goes on for ever */
	assert_false(ends_after_pings(&peer, 190));
	assert_true(ends_after_pings(&peer, 100));
	peer_free(&peer);
}

/* 4,000 bytes in the table, and then a byte for each time that they are named. */
static void a_bomb_of_the_header_table_ends_the_connection(void **state)
{
	static const uint8_t head[] = { 0, 0, 0, 1, 0, 0, 0, 0, 1 };
	struct strbuf block = { 0 }, wire = { 0 };
	struct peer peer;

	(void)state;
	peer_init(&peer);
	exchange_bytes(&peer);
	strbuf_add(&block,
		   "\x82\x84\x86\x40\x01"
		   "a\x7f\xa1\x1e",
		   9);
	for (int i = 0; i < 4000; i++)
		strbuf_add_byte(&block, 'y');
	for (int i = 0; i < 4000; i++)
		strbuf_add_byte(&block, '\xbe');
	strbuf_add(&wire, head, sizeof(head));
	wire.data[1] = (char)(block.len >> 8);
	wire.data[2] = (char)block.len;
	strbuf_add_slice(&wire, strbuf_slice(&block));
	engine_fake_feed(&peer.fake, strbuf_slice(&wire));
	exchange_bytes(&peer);
	assert_true(peer.got_goaway && peer.fake.engine->is_done);
	strbuf_free(&block);
	strbuf_free(&wire);
	peer_free(&peer);
}

static void requests_end_their_calls_with_trailers(void **state)
{
	struct peer peer;
	int32_t none, unknown;

	(void)state;
	peer_init(&peer);
	none = request(&peer, "POST", "/firn.Test/Echo", "content-type", "application/grpc");
	unknown = request(&peer, "POST", "/firn.Test/None", "content-type", "application/grpc");
	run(&peer);
	assert_int_equal(peer.streams[none].status, 200);
	assert_int_equal(peer.streams[none].grpc_status,
			 GRPC_UNIMPLEMENTED); /* no message at all */
	assert_int_equal(peer.streams[unknown].grpc_status, GRPC_UNIMPLEMENTED);
	peer_free(&peer);
}

static void a_deadline_that_passed_in_the_queue_is_told(void **state)
{
	const nghttp2_nv fields[] = { FIELD(":method", "POST"),
				      FIELD(":scheme", "http"),
				      FIELD(":path", "/firn.Test/Echo"),
				      FIELD(":authority", "x"),
				      FIELD("content-type", "application/grpc"),
				      FIELD("grpc-timeout", "1n") };
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	peer.fake.host.now_ns = 1; /* the pool compares with the true clock */
	stream = nghttp2_submit_request(peer.session, NULL, fields, 6, NULL, NULL);
	run(&peer);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_DEADLINE_EXCEEDED);
	peer_free(&peer);
}

static void a_body_held_back_is_asked_for(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer);
	peer.hold_end = true;
	request(&peer, "POST", "/echo", "expect", "100-continue");
	exchange_bytes(&peer);
	assert_true(peer.got_continue);
	peer_free(&peer);
}

static void large_heads_are_refused(void **state)
{
	static char value[HEAD_BYTES_MAX + 1];
	struct peer peer;
	int32_t stream;

	(void)state;
	memset(value, 'a', sizeof(value) - 1);
	peer_init(&peer);
	stream = request(&peer, "GET", "/", "a", value);
	run(&peer);
	assert_int_equal(peer.streams[stream].status, 431);
	peer_free(&peer);
}

static void a_head_that_never_ends_ends_the_connection(void **state)
{
	static const char head[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				   "\0\0\0\4\0\0\0\0\0"	     /* SETTINGS */
				   "\0\0\1\1\0\0\0\0\1\x82"; /* HEADERS, to be continued */
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http2_new);
	engine_fake_feed(&fake, slice_from(head, sizeof(head) - 1));
	engine_fake_pass(&fake, 9 * CLOCK_NS_PER_S);
	assert_false(fake.engine->is_done);
	engine_fake_pass(&fake, 2 * CLOCK_NS_PER_S);
	assert_true(fake.engine->is_done);
	engine_fake_free(&fake);
}

static void stopping_says_goaway_and_finishes(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	stream = request(&peer, "GET", "/", "a", "b");
	exchange_bytes(&peer);
	peer.fake.engine->ops->stop(peer.fake.engine);
	exchange_bytes(&peer);
	assert_true(peer.got_goaway);
	assert_false(peer.fake.engine->is_done);
	run(&peer);
	assert_int_equal(peer.streams[stream].status, 200);
	assert_true(peer.fake.engine->is_done);
	peer_free(&peer);
}

static void a_connection_that_asks_nothing_ends_soon(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer);
	exchange_bytes(&peer);
	pass(&peer, 9);
	assert_false(peer.got_goaway);
	pass(&peer, 2);
	assert_true(peer.got_goaway);
	assert_true(peer.fake.engine->is_done);
	peer_free(&peer);
}

static void an_idle_connection_ends(void **state)
{
	struct peer peer;

	(void)state;
	peer_init(&peer);
	request(&peer, "GET", "/", "a", "b");
	exchange_bytes(&peer);
	run(&peer);
	pass(&peer, 59);
	assert_false(peer.got_goaway);
	pass(&peer, 2);
	assert_true(peer.got_goaway);
	assert_true(peer.fake.engine->is_done);
	peer_free(&peer);
}

static void rubbish_ends_the_connection(void **state)
{
	struct engine_fake fake;

	(void)state;
	engine_fake_init(&fake, http2_new);
	engine_fake_feed(&fake, SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
					      "rubbish rubbish rubbish rubbish"));
	engine_fake_run(&fake);
	assert_true(fake.engine->is_done);
	engine_fake_free(&fake);
}

static void add_message(struct peer *peer, size_t bytes)
{
	struct strbuf message = { 0 };

	memset(strbuf_reserve(&message, bytes), 'm', bytes);
	message.len = bytes;
	grpc_add_frame(&peer->text, 0, strbuf_slice(&message));
	strbuf_free(&message);
}

static int32_t begin_count(struct peer *peer)
{
	return request(peer, "POST", "/firn.Test/Count", "content-type", "application/grpc");
}

static void streamed_messages_are_handed_over_as_they_come(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	peer.fake.service.budget.max_bytes = 8 << 20;
	peer.hold_end = true;
	add_message(&peer, 10);
	stream = begin_count(&peer);
	exchange_bytes(&peer);
	assert_int_equal(peer.fake.queue_count, 1);
	for (int i = 0; i < 3000; i++) /* come while the first runs, 3 MB: more than the window */
		add_message(&peer, 1000);
	peer.hold_end = false;
	nghttp2_session_resume_data(peer.session, stream);
	exchange_bytes(&peer);
	assert_true(peer.text.len > 1 << 20); /* the rest waits on the wire */
	for (int i = 0; i < 20 && !peer.streams[stream].is_closed; i++)
		run(&peer);
	assert_int_equal(peer.streams[stream].grpc_status, 0);
	assert_string_equal(strbuf_text(&peer.got) + GRPC_FRAME_BYTES,
			    "3001 messages, 3000010 bytes");
	peer_free(&peer);
}

static void a_streamed_call_without_messages_is_answered(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	stream = begin_count(&peer);
	run(&peer);
	assert_int_equal(peer.streams[stream].grpc_status, 0);
	assert_string_equal(strbuf_text(&peer.got) + GRPC_FRAME_BYTES, "0 messages, 0 bytes");
	peer_free(&peer);
}

static void bad_streams_are_refused(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	add_message(&peer, 5);
	grpc_add_frame(&peer.text, 0, SLICE_LITERAL("bad")); /* the receiver says no */
	add_message(&peer, 5);
	stream = begin_count(&peer);
	run(&peer);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_INVALID_ARGUMENT);
	add_message(&peer, ENGINE_FAKE_BODY_MAX + 1);
	stream = begin_count(&peer);
	run(&peer);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_RESOURCE_EXHAUSTED);
	strbuf_add_text(&peer.text, "half"); /* ends within a message */
	stream = begin_count(&peer);
	run(&peer);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_INVALID_ARGUMENT);
	add_message(&peer, 5);
	stream = request(&peer, "POST", "/firn.Test/Count", "content-type", "application/json");
	run(&peer);
	assert_int_equal(peer.streams[stream].status, 501);
	peer_free(&peer);
}

/* The budget is back at nought (engine_fake_free looks), the state freed (the sanitizer looks). */
static void a_stream_that_is_reset_is_abandoned(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	peer.hold_end = true;
	add_message(&peer, 10);
	stream = begin_count(&peer);
	run(&peer);
	add_message(&peer, 10);
	nghttp2_session_resume_data(peer.session, stream);
	exchange_bytes(&peer);
	assert_int_equal(peer.fake.queue_count, 1);
	nghttp2_submit_rst_stream(peer.session, 0, stream, NGHTTP2_CANCEL);
	exchange_bytes(&peer);
	run(&peer);
	stream = begin_count(&peer);
	add_message(&peer, 10);
	run(&peer);
	pass(&peer, 31); /* a stalled one as well */
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_DEADLINE_EXCEEDED);
	peer_free(&peer);
}

/* Sends a message of a call that is replied to, and ends the call if it is the last. */
static void talk(struct peer *peer, int32_t *stream, const char *word, bool is_last)
{
	strbuf_clear(&peer->got);
	grpc_add_frame(&peer->text, 0, slice_of(word));
	peer->hold_end = !is_last;
	if (*stream)
		nghttp2_session_resume_data(peer->session, *stream);
	else
		*stream = request(peer, "POST", "/firn.Test/Talk", "content-type",
				  "application/grpc");
	run(peer);
}

static void assert_got(const struct peer *peer, const char *const *messages)
{
	struct slice rest = strbuf_slice(&peer->got), message;
	unsigned flags;

	for (; *messages; messages++) {
		assert_true(grpc_take_frame(&rest, &flags, &message));
		assert_int_equal(flags, 0);
		assert_true(slice_is(message, *messages));
	}
	assert_int_equal(rest.len, 0);
}

static void replies_are_sent_while_the_call_goes_on(void **state)
{
	struct peer peer;
	int32_t stream = 0;

	(void)state;
	peer_init(&peer);
	talk(&peer, &stream, "one", false);
	assert_got(&peer, (const char *const[]){ "one", NULL });
	assert_int_equal(peer.streams[stream].status, 200);
	pass(&peer, 20);
	talk(&peer, &stream, "two", false);
	assert_got(&peer, (const char *const[]){ "two", NULL });
	assert_false(peer.streams[stream].is_closed);
	talk(&peer, &stream, "last", false); /* the server ends it, not the client */
	assert_got(&peer, (const char *const[]){ "last", "3 messages, 10 bytes", NULL });
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_OK);
	peer_free(&peer);
}

static void a_call_may_end_after_a_reply_without_another_message(void **state)
{
	struct peer peer;
	int32_t stream = 0;

	(void)state;
	peer_init(&peer);
	talk(&peer, &stream, "one", true);
	assert_got(&peer, (const char *const[]){ "one", NULL });
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_OK);
	assert_true(peer.streams[stream].is_closed);
	strbuf_clear(&peer.got);
	peer.hold_end = false; /* and without any */
	stream = request(&peer, "POST", "/firn.Test/Talk", "content-type", "application/grpc");
	run(&peer);
	assert_int_equal(peer.got.len, 0);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_OK);
	peer_free(&peer);
}

static void errors_after_a_reply_are_told_at_the_end(void **state)
{
	struct peer peer;
	int32_t stream = 0, slow = 0;

	(void)state;
	peer_init(&peer);
	talk(&peer, &stream, "one", false);
	talk(&peer, &stream, "bad", false);
	assert_got(&peer, (const char *const[]){ NULL });
	assert_int_equal(peer.streams[stream].status, 200);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_INVALID_ARGUMENT);
	talk(&peer, &slow, "one", false);
	pass(&peer, 31);
	assert_int_equal(peer.streams[slow].grpc_status, GRPC_DEADLINE_EXCEEDED);
	peer_free(&peer);
}

/* More than a window at once; what was not sent to who leaves goes, too. */
static void replies_of_any_number_arrive(void **state)
{
	struct peer peer;
	int32_t stream, left = 0;

	(void)state;
	peer_init(&peer);
	peer.fake.service.budget.max_bytes = 8 << 20;
	for (int i = 0; i < 300; i++)
		add_message(&peer, 900);
	stream = request(&peer, "POST", "/firn.Test/Talk", "content-type", "application/grpc");
	for (int i = 0; i < 300 && !peer.streams[stream].is_closed; i++)
		run(&peer);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_OK);
	assert_int_equal(peer.got.len, 300 * (900 + GRPC_FRAME_BYTES) + GRPC_FRAME_BYTES +
					       strlen("300 messages, 270000 bytes"));
	talk(&peer, &left, "one", false);
	grpc_add_frame(&peer.text, 0, SLICE_LITERAL("two"));
	nghttp2_session_resume_data(peer.session, left);
	exchange_bytes(&peer);
	nghttp2_submit_rst_stream(peer.session, 0, left, NGHTTP2_CANCEL);
	run(&peer);
	peer_free(&peer);
}

static int32_t begin_watch(struct peer *peer)
{
	int32_t stream;

	engine_fake_word = 'a';
	add_message(peer, 3);
	stream = request(peer, "POST", "/firn.Test/Watch", "content-type", "application/grpc");
	run(peer);
	return stream;
}

/* Each message is a frame of one byte. */
static void assert_said(const struct peer *peer, const char *words)
{
	assert_int_equal(peer->got.len, strlen(words) * (GRPC_FRAME_BYTES + 1));
	for (size_t i = 0; words[i]; i++)
		assert_int_equal(peer->got.data[i * (GRPC_FRAME_BYTES + 1) + GRPC_FRAME_BYTES],
				 words[i]);
}

static void a_watched_answer_goes_on_until_the_server_stops(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	stream = begin_watch(&peer);
	assert_said(&peer, "a");
	pass(&peer, 3600); /* nothing new to say: neither late nor idle */
	assert_said(&peer, "a");
	assert_false(peer.streams[stream].is_closed);
	engine_fake_word = 'b';
	pass(&peer, 1);
	assert_said(&peer, "ab");
	engine_fake_word = 'c';
	peer.fake.engine->ops->stop(peer.fake.engine);
	exchange_bytes(&peer);
	assert_said(&peer, "abc");
	assert_true(peer.streams[stream].is_closed);
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_OK);
	assert_true(peer.fake.engine->is_done);
	peer_free(&peer);
}

/* The budget is back at nought, the state freed, as above. */
static void a_watched_answer_may_be_left(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	stream = begin_watch(&peer);
	nghttp2_submit_rst_stream(peer.session, 0, stream, NGHTTP2_CANCEL);
	exchange_bytes(&peer);
	assert_true(peer.streams[stream].is_closed);
	begin_watch(&peer); /* goes with its connection */
	assert_said(&peer, "aa");
	peer_free(&peer);
}

/* One that stops while the call is still with a worker says it all the same. */
static void a_watched_answer_ends_though_it_came_after_the_stop(void **state)
{
	struct peer peer;
	int32_t stream;

	(void)state;
	peer_init(&peer);
	engine_fake_word = 'a';
	add_message(&peer, 3);
	stream = request(&peer, "POST", "/firn.Test/Watch", "content-type", "application/grpc");
	exchange_bytes(&peer);
	assert_int_equal(peer.fake.queue_count, 1);
	peer.fake.engine->ops->stop(peer.fake.engine);
	run(&peer);
	assert_said(&peer, "a");
	pass(&peer, 1);
	assert_said(&peer, "a");
	assert_int_equal(peer.streams[stream].grpc_status, GRPC_OK);
	assert_true(peer.fake.engine->is_done);
	peer_free(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streamed_messages_are_handed_over_as_they_come),
		cmocka_unit_test(a_streamed_call_without_messages_is_answered),
		cmocka_unit_test(bad_streams_are_refused),
		cmocka_unit_test(a_stream_that_is_reset_is_abandoned),
		cmocka_unit_test(replies_are_sent_while_the_call_goes_on),
		cmocka_unit_test(a_call_may_end_after_a_reply_without_another_message),
		cmocka_unit_test(errors_after_a_reply_are_told_at_the_end),
		cmocka_unit_test(replies_of_any_number_arrive),
		cmocka_unit_test(a_watched_answer_goes_on_until_the_server_stops),
		cmocka_unit_test(a_watched_answer_may_be_left),
		cmocka_unit_test(a_watched_answer_ends_though_it_came_after_the_stop),
		cmocka_unit_test(requests_are_answered_in_any_order),
		cmocka_unit_test(windows_open_for_what_was_stored),
		cmocka_unit_test(an_early_answer_is_followed_by_a_reset_only_later),
		cmocka_unit_test(a_stalled_body_is_refused),
		cmocka_unit_test(a_parked_body_goes_on_when_there_is_budget),
		cmocka_unit_test(a_reset_cancels_the_request),
		cmocka_unit_test(resets_of_one_read_end_the_connection),
		cmocka_unit_test(frames_that_ask_nothing_end_the_connection),
		cmocka_unit_test(a_bomb_of_the_header_table_ends_the_connection),
		cmocka_unit_test(rapid_resets_end_the_connection),
		cmocka_unit_test(requests_end_their_calls_with_trailers),
		cmocka_unit_test(a_deadline_that_passed_in_the_queue_is_told),
		cmocka_unit_test(a_body_held_back_is_asked_for),
		cmocka_unit_test(large_heads_are_refused),
		cmocka_unit_test(a_head_that_never_ends_ends_the_connection),
		cmocka_unit_test(stopping_says_goaway_and_finishes),
		cmocka_unit_test(a_connection_that_asks_nothing_ends_soon),
		cmocka_unit_test(an_idle_connection_ends),
		cmocka_unit_test(rubbish_ends_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
