/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2 - the HTTP/2 engine (RFC 9113), on nghttp2.
 *
 * Windows are ours to open: bytes are given back to the peer's windows when they have been stored,
 * and held back while a body waits for the budget. When an answer comes before the request was read
 * whole, what still arrives is dropped, and only after a while RST_STREAM(NO_ERROR) (section 8.1)
 * ends it: there are clients that forget the answer when they see the reset.
 * nghttp2 checks frames and header fields, bounds CONTINUATION frames and outgoing ACKs. The number
 * of requests that run for this connection is bounded here, because a reset frees its stream at
 * once but not the worker. So are the rate of streams that end by an error, whoever resets them
 * (nghttp2 would read on until its GOAWAY is sent, and one read holds a thousand requests that are
 * reset), the number of frames that ask for nothing (PING, SETTINGS, WINDOW_UPDATE, PRIORITY, empty
 * DATA), and what compressed header fields grow to. A peer that goes beyond these loses the
 * connection: it would cost more to read than to send, and those who connect after it would wait.
 */
#include "net/http/engine.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "net/http/lines.h"

#define STREAMS_MAX 128u
#define RUNNING_MAX (2 * STREAMS_MAX) /* with those whose stream was reset */
#define STREAM_WINDOW_BYTES (1024 * 1024)
#define CONNECTION_WINDOW_BYTES (4 * 1024 * 1024)
#define RESET_BURST 200 /* streams that end by an error: at once, and per second after that */
#define RESETS_PER_S 50
#define IDLE_FRAMES_BURST                                                                          \
	200 /* frames that ask for nothing: at once, and per second after that                     \
	     */
#define IDLE_FRAMES_PER_S 100
#define IDLE_FRAMES_PER_REQUEST 10
#define IDLE_FRAMES_PER_KIB 1 /* of answers: their receiver opens windows */
#define FIELDS_BYTES_MAX                                                                           \
	(4u * HEAD_BYTES_MAX)	 /* of one head; over HEAD_BYTES_MAX it is refused                 \
				  */
#define FIELD_OVERHEAD_BYTES 32u /* RFC 9113, section 6.5.2 */
#define HEADERS_OUT_MAX 64u	 /* of one answer */
#define STREAM_GONE (-1)	 /* exchange->stream after the peer closed it */

/* How often a peer may do something: a number at once, and a rate after that. */
struct allowance {
	double left;
	int64_t at_ns;
};

struct http2 {
	struct engine engine;
	nghttp2_session *session;
	struct exchange *exchanges; /* of open streams, and of closed ones while they run */
	unsigned running_count;
	struct allowance resets, idle_frames;
	size_t fields_bytes; /* of the head that is being read */
	bool is_stopping;
	bool is_broken; /* nghttp2 gave up on the peer */
	bool is_enough; /* we did: a GOAWAY says so, nothing is read any more */
	int64_t idle_since_ns;
};

static struct http2 *http2_of(struct engine *engine)
{
	return (struct http2 *)engine; /* its first member */
}

static int64_t now_of(const struct http2 *http)
{
	return http->engine.host->now_ns;
}

/* False when none is left. */
static bool spend(struct allowance *allowance, int64_t now_ns, double per_s, double burst)
{
	if (now_ns > allowance->at_ns)
		allowance->left += (double)(now_ns - allowance->at_ns) / CLOCK_NS_PER_S * per_s;
	allowance->at_ns = now_ns;
	if (allowance->left > burst)
		allowance->left = burst;
	allowance->left -= 1;
	return allowance->left >= 0;
}

/* Ends the connection from within a callback. */
static int end_flood(struct http2 *http)
{
	http->is_enough = true;
	nghttp2_session_terminate_session(http->session, NGHTTP2_ENHANCE_YOUR_CALM);
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void link_exchange(struct http2 *http, struct exchange *exchange)
{
	exchange->next = http->exchanges;
	exchange->previous = NULL;
	if (exchange->next)
		exchange->next->previous = exchange;
	http->exchanges = exchange;
}

static void unlink_exchange(struct http2 *http, struct exchange *exchange)
{
	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else
		http->exchanges = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	exchange->next = exchange->previous = NULL;
}

static struct exchange *exchange_of(struct http2 *http, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(http->session, stream);
}

/* Splits lines into fields that nghttp2 copies. Returns how many. */
static size_t fields_of(struct slice lines, nghttp2_nv *fields, size_t used)
{
	struct net_header header;

	while (used < HEADERS_OUT_MAX && lines_next(&lines, &header))
		fields[used++] = (nghttp2_nv){
			.name = (uint8_t *)(uintptr_t)header.name.data,
			.value = (uint8_t *)(uintptr_t)header.value.data,
			.namelen = header.name.len,
			.valuelen = header.value.len,
		};
	return used;
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *to, size_t length,
			   uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct http2 *http = context;
	struct exchange *exchange = source->ptr;
	nghttp2_nv fields[HEADERS_OUT_MAX];
	bool is_end;
	size_t read = exchange_read(exchange, to, length, &is_end), count;

	http->idle_frames.left += (double)read / 1024 * IDLE_FRAMES_PER_KIB;
	pace_move(&exchange->pace, now_of(http), read);
	if (!is_end)
		return read ? (ssize_t)read : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (exchange->answer.trailers.len) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		count = fields_of(strbuf_slice(&exchange->answer.trailers), fields, 0);
		if (nghttp2_submit_trailer(session, stream, fields, count))
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)read;
}

/* Sends what there is of the answer; replies before it let it begin early. */
static void send_answer(struct http2 *http, struct exchange *exchange)
{
	const nghttp2_data_provider body = { { .ptr = exchange }, read_answer };
	const struct http_answer *answer = &exchange->answer;
	bool has_body =
		!answer->is_head && (answer->is_begun || answer->body.len || answer->trailers.len);
	nghttp2_nv fields[HEADERS_OUT_MAX];
	char status[4] = { (char)('0' + answer->status / 100 % 10),
			   (char)('0' + answer->status / 10 % 10),
			   (char)('0' + answer->status % 10) };
	size_t count;

	pace_begin(&exchange->pace, now_of(http));
	if (exchange->is_sending) {
		nghttp2_session_resume_data(http->session, exchange->stream);
		return;
	}
	exchange->is_sending = true;
	fields[0] = (nghttp2_nv){ (uint8_t *)(uintptr_t) ":status", (uint8_t *)status, 7, 3, 0 };
	count = fields_of(strbuf_slice(&answer->lines), fields, 1);
	if (nghttp2_submit_response(http->session, exchange->stream, fields, count,
				    has_body ? &body : NULL))
		nghttp2_submit_rst_stream(http->session, NGHTTP2_FLAG_NONE, exchange->stream,
					  NGHTTP2_INTERNAL_ERROR);
}

/* Gives bytes held back from the peer's windows back to it. */
static void release_window(struct http2 *http, struct exchange *exchange)
{
	if (exchange->unread_bytes)
		nghttp2_session_consume(http->session, exchange->stream, exchange->unread_bytes);
	exchange->unread_bytes = 0;
}

static void refuse(struct http2 *http, struct exchange *exchange, enum refusal refusal)
{
	exchange_refuse(exchange, refusal, NULL);
	release_window(http, exchange);
	send_answer(http, exchange);
}

static void submit(struct http2 *http, struct exchange *exchange)
{
	exchange->is_parked = false;
	exchange->is_last = exchange->has_ended;
	release_window(http, exchange);
	if (http->running_count >= RUNNING_MAX) {
		refuse(http, exchange, REFUSAL_QUEUE);
		return;
	}
	if (engine_submit(&http->engine, exchange))
		http->running_count++;
	else
		send_answer(http, exchange);
}

static void send_continue(struct http2 *http, const struct exchange *exchange)
{
	const nghttp2_nv status = { (uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "100",
				    7, 3, 0 };

	nghttp2_submit_headers(http->session, NGHTTP2_FLAG_NONE, exchange->stream, NULL, &status, 1,
			       NULL);
}

/* The announced length of a body that will follow; -1 = unknown. */
static int64_t body_length(const struct exchange *exchange)
{
	const struct head *head = &exchange->head;
	uint64_t length;

	for (size_t i = 0; i < head->fields_count; i++)
		if (slice_is(head_text(head, head->fields[i].name), "content-length"))
			return slice_parse_u64(head_text(head, head->fields[i].value), &length) &&
					       length <= INT64_MAX
				       ? (int64_t)length
				       : -1;
	return -1;
}

static void end_head(struct http2 *http, struct exchange *exchange, bool is_whole)
{
	struct slice expect;

	http->engine.is_proven = true;
	if (exchange->phase == EXCHANGE_HEAD)
		exchange_begin_body(exchange, is_whole ? 0 : body_length(exchange), now_of(http));
	if (exchange->phase == EXCHANGE_ANSWER) {
		send_answer(http, exchange);
		return;
	}
	if (is_whole) {
		exchange->has_ended = true;
		submit(http, exchange);
		return;
	}
	http->engine.is_parked |= exchange->is_parked;
	expect = net_request_header(&exchange->request, "expect");
	if (slice_is(expect, "100-continue"))
		send_continue(http, exchange);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http = context;
	struct engine_host *host = http->engine.host;
	struct exchange *exchange;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	exchange = exchange_new(host->service, NET_HTTP2, host->peer, host->now_ns);
	exchange->engine = &http->engine;
	exchange->stream = frame->hd.stream_id;
	link_exchange(http, exchange);
	http->fields_bytes = 0;
	http->idle_frames.left += IDLE_FRAMES_PER_REQUEST;
	return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, exchange);
}

static bool add_field(struct head *head, struct slice name, struct slice value)
{
	if (slice_is(name, ":method"))
		return head_set_method(head, value);
	if (slice_is(name, ":path"))
		return head_set_target(head, value);
	if (slice_is(name, ":authority"))
		return head_add(head, SLICE_LITERAL("host"), value);
	if (name.len && name.data[0] == ':')
		return true;
	return head_add(head, name, value);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *context)
{
	struct http2 *http = context;
	struct exchange *exchange = exchange_of(http, frame->hd.stream_id);

	(void)session;
	(void)flags;
	http->fields_bytes += name_len + value_len + FIELD_OVERHEAD_BYTES;
	if (http->fields_bytes > FIELDS_BYTES_MAX)
		return end_flood(http);
	if (!exchange || exchange->phase != EXCHANGE_HEAD)
		return 0;
	if (!add_field(&exchange->head, slice_from(name, name_len), slice_from(value, value_len)))
		exchange_refuse(exchange, REFUSAL_HEAD_BYTES, NULL);
	return 0;
}

static void end_body(struct http2 *http, struct exchange *exchange)
{
	exchange->has_ended = true;
	if (exchange->phase == EXCHANGE_BODY)
		submit(http, exchange);
}

static bool asks_nothing(const nghttp2_frame *frame)
{
	switch (frame->hd.type) {
	case NGHTTP2_PING:
	case NGHTTP2_SETTINGS:
	case NGHTTP2_WINDOW_UPDATE:
	case NGHTTP2_PRIORITY:
		return true;
	case NGHTTP2_DATA:
		return !frame->hd.length && !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	default:
		return false;
	}
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http = context;
	bool is_whole = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	struct exchange *exchange;

	(void)session;
	if (asks_nothing(frame) &&
	    !spend(&http->idle_frames, now_of(http), IDLE_FRAMES_PER_S, IDLE_FRAMES_BURST))
		return end_flood(http);
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	exchange = exchange_of(http, frame->hd.stream_id);
	if (!exchange)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		end_head(http, exchange, is_whole);
	else if (is_whole)
		end_body(http, exchange);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t len, void *context)
{
	struct http2 *http = context;
	struct exchange *exchange = exchange_of(http, stream);

	(void)flags;
	if (exchange && exchange->phase == EXCHANGE_RUNNING && exchange_is_stream(exchange)) {
		exchange->unread_bytes += len;
		exchange_add_more(exchange, slice_from(data, len));
		return 0;
	}
	if (!exchange || exchange->phase != EXCHANGE_BODY) {
		nghttp2_session_consume(session, stream, len);
		return 0;
	}
	exchange->unread_bytes += len;
	exchange_add_body(exchange, slice_from(data, len), now_of(http));
	if (!exchange->is_parked || exchange->phase == EXCHANGE_ANSWER)
		release_window(http, exchange);
	if (exchange->phase == EXCHANGE_ANSWER)
		send_answer(http, exchange);
	else if (exchange_is_stream(exchange) && exchange_has_message(exchange))
		submit(http, exchange);
	return 0;
}

/* The answer is out, though the request may go on. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http = context;
	struct exchange *exchange;

	(void)session;
	if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
	    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	exchange = exchange_of(http, frame->hd.stream_id);
	if (exchange) {
		exchange->is_answered = true;
		pace_begin(&exchange->pace, now_of(http));
	}
	return 0;
}

static void drop(struct http2 *http, struct exchange *exchange)
{
	unlink_exchange(http, exchange);
	exchange_free(exchange);
	if (!http->exchanges)
		http->idle_since_ns = now_of(http);
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct http2 *http = context;
	struct exchange *exchange = exchange_of(http, stream);

	if (code != NGHTTP2_NO_ERROR &&
	    !spend(&http->resets, now_of(http), RESETS_PER_S, RESET_BURST))
		return end_flood(http);
	if (!exchange)
		return 0;
	if (exchange->unread_bytes)
		nghttp2_session_consume_connection(session, exchange->unread_bytes);
	if (exchange->phase == EXCHANGE_RUNNING) {
		exchange->stream = STREAM_GONE;
		engine_abandon(exchange);
		return 0;
	}
	drop(http, exchange);
	return 0;
}

static void update_done(struct http2 *http)
{
	bool wants_write = nghttp2_session_want_write(http->session);

	if (http->is_broken || (!wants_write && !nghttp2_session_want_read(http->session)) ||
	    (!wants_write && http->is_stopping && !http->exchanges))
		http->engine.is_done = true;
}

static size_t http2_feed(struct engine *engine, struct slice bytes)
{
	struct http2 *http = http2_of(engine);

	if (engine->is_done || http->is_enough)
		return bytes.len;
	if (nghttp2_session_mem_recv(http->session, (const uint8_t *)bytes.data, bytes.len) < 0) {
		http->is_broken = !http->is_enough;
		refusal_count(REFUSAL_MALFORMED);
	}
	update_done(http);
	return bytes.len;
}

static void http2_end(struct engine *engine)
{
	engine->is_done = true;
}

static void http2_pull(struct engine *engine, struct strbuf *out, size_t bytes_max)
{
	struct http2 *http = http2_of(engine);
	const uint8_t *data;
	ssize_t len = 0;

	while (!http->is_broken && out->len < bytes_max) {
		len = nghttp2_session_mem_send(http->session, &data);
		if (len <= 0)
			break;
		strbuf_add(out, data, (size_t)len);
	}
	if (len < 0)
		http->is_broken = true;
	update_done(http);
}

/* A streamed request wants more, and some may be here already. */
static void resume(struct http2 *http, struct exchange *exchange)
{
	exchange_resume(exchange, now_of(http));
	release_window(http, exchange);
	if (exchange->phase == EXCHANGE_ANSWER)
		send_answer(http, exchange);
	else if (exchange->has_ended || exchange_has_message(exchange))
		submit(http, exchange);
}

static void http2_answer(struct engine *engine, struct exchange *exchange)
{
	struct http2 *http = http2_of(engine);

	assert(http->running_count > 0);
	engine_take_back(exchange);
	http->running_count--;
	if (exchange->stream == STREAM_GONE) {
		drop(http, exchange);
		return;
	}
	if (exchange_take_replies(exchange) && exchange->phase == EXCHANGE_BODY)
		send_answer(http, exchange);
	if (exchange->phase == EXCHANGE_BODY)
		resume(http, exchange);
	else
		send_answer(http, exchange);
}

static bool is_watched(const struct exchange *exchange)
{
	return exchange->phase == EXCHANGE_ANSWER && exchange->is_watched &&
	       exchange->answered_bytes == exchange->answer.body.len;
}

/* Says what has become new; while the server stops that is the last of it. */
static void watch(struct http2 *http, struct exchange *exchange)
{
	if (!exchange_watch(exchange) && !http->is_stopping)
		return;
	exchange->is_watched = !http->is_stopping;
	pace_begin(&exchange->pace, now_of(http));
	nghttp2_session_resume_data(http->session, exchange->stream);
}

static bool is_reader_late(const struct exchange *exchange, int64_t now_ns)
{
	return pace_is_late(&exchange->pace, now_ns) ||
	       (exchange->answer_bytes > SMALL_ANSWER_BYTES &&
		service_answers_are_short(exchange->service) &&
		pace_is_late_when_short(&exchange->pace, now_ns));
}

/* Acts on one exchange that may be late. False when the whole connection has to go. */
static bool tick_exchange(struct http2 *http, struct exchange *exchange)
{
	int64_t now_ns = now_of(http);
	int64_t waited_ns = now_ns - exchange->pace.begun_at_ns;

	switch (exchange->phase) {
	case EXCHANGE_HEAD:
		return waited_ns <= ENGINE_HEAD_TIMEOUT_NS;
	case EXCHANGE_BODY:
		if (exchange->is_parked && !budget_is_tight(&exchange->service->budget)) {
			exchange->is_parked = false;
			release_window(http, exchange);
			pace_begin(&exchange->pace, now_ns);
		} else if (exchange->is_parked && waited_ns > ENGINE_PARK_TIMEOUT_NS) {
			refuse(http, exchange, REFUSAL_INFLIGHT);
		} else if (!exchange->is_parked && pace_is_late(&exchange->pace, now_ns)) {
			refuse(http, exchange, REFUSAL_SLOW);
		}
		http->engine.is_parked |= exchange->is_parked;
		return true;
	case EXCHANGE_ANSWER:
		if (is_watched(exchange))
			watch(http, exchange);
		else if (exchange->is_answered ? waited_ns > ENGINE_LINGER_NS
					       : is_reader_late(exchange, now_ns))
			nghttp2_submit_rst_stream(
				http->session, NGHTTP2_FLAG_NONE, exchange->stream,
				exchange->is_answered ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
		return true;
	case EXCHANGE_RUNNING:
		break;
	}
	return true;
}

static void http2_stop(struct engine *engine)
{
	struct http2 *http = http2_of(engine);

	if (!http->is_stopping)
		nghttp2_submit_goaway(http->session, NGHTTP2_FLAG_NONE,
				      nghttp2_session_get_last_proc_stream_id(http->session),
				      NGHTTP2_NO_ERROR, NULL, 0);
	http->is_stopping = true;
	for (struct exchange *exchange = http->exchanges; exchange; exchange = exchange->next)
		if (is_watched(exchange))
			watch(http, exchange);
}

static void http2_tick(struct engine *engine)
{
	struct http2 *http = http2_of(engine);

	engine->is_parked = false;
	if (engine->is_done)
		return;
	for (struct exchange *exchange = http->exchanges; exchange; exchange = exchange->next) {
		if (tick_exchange(http, exchange))
			continue;
		refusal_count(REFUSAL_SLOW);
		http->is_broken = engine->is_done = true;
		return;
	}
	if (!http->exchanges && now_of(http) - http->idle_since_ns > engine_idle_max_ns(engine))
		http2_stop(engine);
}

static int64_t http2_idle_since(const struct engine *engine)
{
	const struct http2 *http = (const struct http2 *)engine;

	for (const struct exchange *at = http->exchanges; at; at = at->next)
		if (at->phase != EXCHANGE_HEAD)
			return INT64_MAX;
	return http->idle_since_ns;
}

static void http2_free(struct engine *engine)
{
	struct http2 *http = http2_of(engine);
	struct exchange *exchange = http->exchanges;

	nghttp2_session_del(http->session);
	while (exchange) {
		struct exchange *next = exchange->next;

		if (exchange->phase == EXCHANGE_RUNNING) {
			engine_abandon(exchange);
			exchange->engine = NULL;
		} else {
			exchange_free(exchange);
		}
		exchange = next;
	}
	free(http);
}

static const struct engine_ops http2_ops = {
	.feed = http2_feed,
	.end = http2_end,
	.pull = http2_pull,
	.answer = http2_answer,
	.tick = http2_tick,
	.idle_since = http2_idle_since,
	.stop = http2_stop,
	.free = http2_free,
};

static nghttp2_session *new_session(struct http2 *http)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_BYTES_MAX },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;
	nghttp2_option *option;

	if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
		abort(); /* out of memory: as mem.h */
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	if (nghttp2_session_server_new2(&session, callbacks, http, option) ||
	    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
				    sizeof(settings) / sizeof(settings[0])) ||
	    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
						  CONNECTION_WINDOW_BYTES))
		abort();
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

struct engine *http2_new(struct engine_host *host)
{
	struct http2 *http = mem_new(struct http2);

	http->engine.ops = &http2_ops;
	http->engine.host = host;
	http->idle_since_ns = host->now_ns;
	http->resets = (struct allowance){ RESET_BURST, host->now_ns };
	http->idle_frames = (struct allowance){ IDLE_FRAMES_BURST, host->now_ns };
	http->session = new_session(http);
	return &http->engine;
}
