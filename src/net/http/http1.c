/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1 - the HTTP/1.0 and 1.1 engine (RFC 9112), on llhttp in its strict mode.
 *
 * One request at a time: while one is being answered the parser is paused and further (pipelined)
 * bytes stay with the owner. Framing that two readers could understand differently ends the
 * connection: both Content-Length and Transfer-Encoding, repeated or signed lengths, a
 * Transfer-Encoding that is not exactly "chunked", folded headers, HTTP/1.0 with chunks, no Host or
 * two of them. So does every answer given before the body was read whole.
 */
#include "net/http/engine.h"

#include <assert.h>
#include <llhttp.h>

#include "base/mem.h"
#include "net/http/lines.h"

enum state {
	READING,   /* the head or the body of a request, or between two */
	WAITING,   /* for the answer */
	ANSWERING, /* `exchange` has its answer */
};

/* Where in a head the bytes are; only to find folded lines, which llhttp would join silently. */
enum scan { SCAN_START, SCAN_LINE, SCAN_LINE_END, SCAN_BLANK_LINE, SCAN_DONE };

struct http1 {
	struct engine engine;
	llhttp_t parser;
	enum state state;
	enum scan scan;
	struct exchange *exchange; /* from the first byte of a request to the last of its answer */
	struct strbuf target, name, value;
	struct strbuf out; /* status lines and headers */
	unsigned hosts;
	bool head_is_read, is_whole;
	bool keeps_alive;
	bool wants_continue;
	bool is_stopping, peer_ended;
	uint64_t trailer_bytes;
	int64_t idle_since_ns;
};

static struct http1 *http1_of(struct engine *engine)
{
	return (struct http1 *)engine; /* its first member */
}

static struct http1 *http1_of_parser(llhttp_t *parser)
{
	return parser->data;
}

static int64_t now_of(const struct http1 *http)
{
	return http->engine.host->now_ns;
}

/* Stops the parser for good; the answer is in the exchange. */
static int refuse(struct http1 *http, enum refusal refusal, const char *detail)
{
	if (http->exchange->phase != EXCHANGE_ANSWER)
		exchange_refuse(http->exchange, refusal, detail);
	return HPE_USER;
}

static int on_message_begin(llhttp_t *parser)
{
	struct http1 *http = http1_of_parser(parser);
	struct engine_host *host = http->engine.host;

	http->exchange = exchange_new(host->service, NET_HTTP1, host->peer, host->now_ns);
	http->hosts = 0;
	http->head_is_read = http->is_whole = http->wants_continue = false;
	http->trailer_bytes = 0;
	strbuf_clear(&http->target);
	strbuf_clear(&http->name);
	strbuf_clear(&http->value);
	return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
	struct http1 *http = http1_of_parser(parser);

	if (length > HEAD_TARGET_BYTES_MAX - http->target.len)
		return refuse(http, REFUSAL_TARGET_BYTES, NULL);
	strbuf_add(&http->target, at, length);
	return 0;
}

/* Gathers a piece of a header. What follows the body is counted and forgotten. */
static int add_piece(struct http1 *http, struct strbuf *piece, const char *at, size_t length)
{
	if (http->head_is_read) {
		http->trailer_bytes += length;
		if (http->trailer_bytes > HEAD_BYTES_MAX)
			return refuse(http, REFUSAL_HEAD_BYTES, NULL);
		return 0;
	}
	if (length > HEAD_BYTES_MAX - piece->len)
		return refuse(http, REFUSAL_HEAD_BYTES, NULL);
	strbuf_add(piece, at, length);
	return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t length)
{
	struct http1 *http = http1_of_parser(parser);

	return add_piece(http, &http->name, at, length);
}

static int on_header_value(llhttp_t *parser, const char *at, size_t length)
{
	struct http1 *http = http1_of_parser(parser);

	return add_piece(http, &http->value, at, length);
}

/* Whether a finished header may stand; the reason when it may not. */
static const char *check_header(struct http1 *http)
{
	struct slice name = strbuf_slice(&http->name);
	struct slice value = strbuf_slice(&http->value);

	if (!name.len)
		return "a header without a name";
	if (name.len == 4 && !strncasecmp(name.data, "host", 4) && http->hosts++)
		return "more than one Host header";
	if (name.len == 17 && !strncasecmp(name.data, "transfer-encoding", 17) &&
	    (value.len != 7 || strncasecmp(value.data, "chunked", 7) != 0))
		return "a Transfer-Encoding other than chunked";
	if (name.len == 14 && !strncasecmp(name.data, "content-length", 14)) {
		uint64_t length;

		if (!slice_parse_u64(value, &length))
			return "a Content-Length that is not a number";
	}
	return NULL;
}

static void trim_end(struct strbuf *text)
{
	while (text->len && (text->data[text->len - 1] == ' ' || text->data[text->len - 1] == '\t'))
		text->len--;
}

static int on_header_value_complete(llhttp_t *parser)
{
	struct http1 *http = http1_of_parser(parser);
	const char *problem;

	if (http->head_is_read)
		return 0;
	trim_end(&http->value);
	problem = check_header(http);
	if (problem)
		return refuse(http, REFUSAL_MALFORMED, problem);
	if (!head_add(&http->exchange->head, strbuf_slice(&http->name), strbuf_slice(&http->value)))
		return refuse(http, REFUSAL_HEAD_BYTES, NULL);
	strbuf_clear(&http->name);
	strbuf_clear(&http->value);
	return 0;
}

static const char *check_framing(const struct http1 *http)
{
	const llhttp_t *parser = &http->parser;
	bool is_chunked = parser->flags & F_TRANSFER_ENCODING;

	if (parser->http_minor == 1 && !http->hosts)
		return "no Host header";
	if (is_chunked && (parser->flags & F_CONTENT_LENGTH))
		return "both Content-Length and Transfer-Encoding";
	if (is_chunked && parser->http_minor == 0)
		return "Transfer-Encoding in HTTP/1.0";
	return NULL;
}

static int64_t body_length(const llhttp_t *parser)
{
	if (parser->flags & F_CHUNKED)
		return -1;
	if (!(parser->flags & F_CONTENT_LENGTH))
		return 0;
	return parser->content_length < INT64_MAX ? (int64_t)parser->content_length : INT64_MAX;
}

static int on_headers_complete(llhttp_t *parser)
{
	struct http1 *http = http1_of_parser(parser);
	struct exchange *exchange = http->exchange;
	const char *method = llhttp_method_name(parser->method);
	struct slice expect;
	const char *problem;

	http->head_is_read = http->engine.is_proven = true;
	parser->upgrade = 0; /* no upgrades here: the request stands as it is */
	http->keeps_alive = llhttp_should_keep_alive(parser);
	if (!head_set_method(&exchange->head, slice_of(method)) ||
	    !head_set_target(&exchange->head, strbuf_slice(&http->target)))
		return refuse(http, REFUSAL_HEAD_BYTES, NULL);
	if (parser->http_major != 1 || parser->http_minor > 1)
		return refuse(http, REFUSAL_VERSION, NULL);
	problem = check_framing(http);
	if (problem)
		return refuse(http, REFUSAL_MALFORMED, problem);
	exchange_begin_body(exchange, body_length(parser), now_of(http));
	if (exchange->phase == EXCHANGE_ANSWER)
		return body_length(parser) ? HPE_USER : 0; /* nothing left to read: it may go on */
	expect = net_request_header(&exchange->request, "expect");
	if (expect.len && parser->http_minor == 1) {
		if (expect.len != 12 || strncasecmp(expect.data, "100-continue", 12) != 0)
			return refuse(http, REFUSAL_EXPECT, NULL);
		http->wants_continue = body_length(parser) != 0;
	}
	return exchange->is_parked ? HPE_PAUSED : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct http1 *http = http1_of_parser(parser);

	http->wants_continue = false;
	exchange_add_body(http->exchange, slice_from(at, length), now_of(http));
	return http->exchange->phase == EXCHANGE_ANSWER ? HPE_USER : 0;
}

static int on_message_complete(llhttp_t *parser)
{
	http1_of_parser(parser)->is_whole = true;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_message_begin = on_message_begin,
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

/* The phrases of RFC 9110 for what is common here; none is as good as any other. */
static const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 204, "No Content" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 499, "Client Closed Request" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

/* The exchange has its answer: writes the head of it. */
static void begin_answer(struct http1 *http)
{
	const struct http_answer *answer = &http->exchange->answer;
	bool is_old = http->parser.http_major == 1 && http->parser.http_minor == 0;

	if (!http->is_whole)
		http->engine.lingers = true;
	if (!http->is_whole || http->is_stopping || http->peer_ended)
		http->keeps_alive = false;
	strbuf_addf(&http->out, "HTTP/1.1 %d %s\r\n", answer->status, reason_of(answer->status));
	strbuf_add_slice(&http->out, strbuf_slice(&answer->lines));
	if (!http->keeps_alive)
		strbuf_add_text(&http->out, "connection: close\r\n");
	else if (is_old)
		strbuf_add_text(&http->out, "connection: keep-alive\r\n");
	strbuf_add_text(&http->out, "\r\n");
	http->state = ANSWERING;
	pace_begin(&http->exchange->pace, now_of(http));
}

static void end_answer(struct http1 *http)
{
	exchange_free(http->exchange);
	http->exchange = NULL;
	http->state = READING;
	http->scan = SCAN_START;
	http->idle_since_ns = now_of(http);
	if (!http->keeps_alive)
		http->engine.is_done = true;
}

/* The request is whole. */
static void submit(struct http1 *http)
{
	http->state = WAITING;
	if (http->exchange->phase == EXCHANGE_ANSWER ||
	    !engine_submit(&http->engine, http->exchange))
		begin_answer(http);
}

/* Answers whatever the peer was about to say, and ends the connection. */
static void turn_away(struct http1 *http, enum refusal refusal, const char *detail)
{
	struct engine_host *host = http->engine.host;

	if (!http->exchange)
		http->exchange = exchange_new(host->service, NET_HTTP1, host->peer, host->now_ns);
	http->is_whole = false;
	refuse(http, refusal, detail);
	begin_answer(http);
}

void http1_turn_away(struct engine *engine, enum refusal refusal)
{
	turn_away(http1_of(engine), refusal, NULL);
}

static void answer_malformed(struct http1 *http)
{
	bool is_version = llhttp_get_errno(&http->parser) == HPE_INVALID_VERSION;

	turn_away(http, is_version ? REFUSAL_VERSION : REFUSAL_MALFORMED,
		  llhttp_get_error_reason(&http->parser));
}

static void update_parked(struct http1 *http)
{
	http->engine.is_parked =
		http->state == READING && http->exchange && http->exchange->is_parked;
}

static void offer_continue(struct http1 *http)
{
	if (http->wants_continue && http->state == READING && !http->engine.is_parked)
		strbuf_add_text(&http->out, "HTTP/1.1 100 Continue\r\n\r\n");
	if (!http->engine.is_parked)
		http->wants_continue = false;
}

static enum scan scan_next(enum scan scan, char c)
{
	switch (scan) {
	case SCAN_START: /* blank lines before a request are passed over */
		return c == '\r' || c == '\n' ? SCAN_START : SCAN_LINE;
	case SCAN_LINE:
		return c == '\n' ? SCAN_LINE_END : SCAN_LINE;
	case SCAN_LINE_END:
		return c == '\n' ? SCAN_DONE : c == '\r' ? SCAN_BLANK_LINE : SCAN_LINE;
	case SCAN_BLANK_LINE:
		return c == '\n' ? SCAN_DONE : SCAN_LINE;
	case SCAN_DONE:
		break;
	}
	return SCAN_DONE;
}

/* True if some line of the head begins with a blank (RFC 9112 section 5.2: obs-fold). */
static bool has_fold(struct http1 *http, struct slice bytes)
{
	for (size_t i = 0; i < bytes.len && http->scan != SCAN_DONE; i++) {
		char c = bytes.data[i];

		if (http->scan == SCAN_LINE_END && (c == ' ' || c == '\t'))
			return true;
		http->scan = scan_next(http->scan, c);
	}
	return false;
}

static size_t http1_feed(struct engine *engine, struct slice bytes)
{
	struct http1 *http = http1_of(engine);
	size_t taken = bytes.len;
	llhttp_errno_t code;

	if (http->state != READING || engine->is_done || engine->is_parked)
		return 0;
	if (has_fold(http, bytes)) {
		turn_away(http, REFUSAL_MALFORMED, "a folded header");
		return bytes.len;
	}
	if (llhttp_get_errno(&http->parser) == HPE_PAUSED)
		llhttp_resume(&http->parser);
	code = llhttp_execute(&http->parser, bytes.data, bytes.len);
	if (code == HPE_PAUSED)
		taken = (size_t)(llhttp_get_error_pos(&http->parser) - bytes.data);
	if (code == HPE_PAUSED && http->is_whole)
		submit(http);
	else if (code == HPE_USER)
		begin_answer(http);
	else if (code != HPE_OK && code != HPE_PAUSED)
		answer_malformed(http);
	update_parked(http);
	offer_continue(http);
	return taken;
}

static void http1_end(struct engine *engine)
{
	struct http1 *http = http1_of(engine);

	http->peer_ended = true;
	if (http->state == WAITING)
		atomic_store(&http->exchange->cancelled, true);
	else if (http->state == READING)
		engine->is_done = true;
	http->keeps_alive = false;
}

static void http1_pull(struct engine *engine, struct strbuf *out, size_t bytes_max)
{
	struct http1 *http = http1_of(engine);
	struct exchange *exchange = http->exchange;
	struct slice rest;

	if (http->out.len) {
		strbuf_add_slice(out, strbuf_slice(&http->out));
		strbuf_clear(&http->out);
	}
	if (http->state != ANSWERING || out->len >= bytes_max)
		return;
	rest = slice_tail(exchange->answer.body, exchange->answered_bytes);
	if (exchange->answer.is_head)
		rest.len = 0;
	if (rest.len > bytes_max - out->len)
		rest.len = bytes_max - out->len;
	strbuf_add_slice(out, rest);
	exchange->answered_bytes += rest.len;
	pace_move(&exchange->pace, now_of(http), rest.len);
	if (exchange->answer.is_head || exchange->answered_bytes == exchange->answer.body.len)
		end_answer(http);
}

static void http1_answer(struct engine *engine, struct exchange *exchange)
{
	struct http1 *http = http1_of(engine);

	assert(http->state == WAITING && http->exchange == exchange);
	engine_take_back(exchange);
	begin_answer(http);
}

/* Nothing is under way: how long may that last? */
static void tick_idle(struct http1 *http)
{
	if (now_of(http) - http->idle_since_ns > engine_idle_max_ns(&http->engine))
		http->engine.is_done = true;
}

static void tick_reading(struct http1 *http)
{
	struct exchange *exchange = http->exchange;
	int64_t waited_ns = now_of(http) - exchange->pace.begun_at_ns;

	if (!http->head_is_read && waited_ns > ENGINE_HEAD_TIMEOUT_NS) {
		refuse(http, REFUSAL_SLOW, NULL);
	} else if (exchange->is_parked) {
		if (!budget_is_tight(&exchange->service->budget)) {
			exchange->is_parked = false;
			pace_begin(&exchange->pace, now_of(http));
		} else if (waited_ns > ENGINE_PARK_TIMEOUT_NS) {
			refuse(http, REFUSAL_INFLIGHT, NULL);
		}
	} else if (http->head_is_read && pace_is_late(&exchange->pace, now_of(http))) {
		refuse(http, REFUSAL_SLOW, NULL);
	}
	if (exchange->phase == EXCHANGE_ANSWER)
		begin_answer(http);
	update_parked(http);
	offer_continue(http);
}

static void http1_tick(struct engine *engine)
{
	struct http1 *http = http1_of(engine);

	if (engine->is_done)
		return;
	if (http->state == READING && http->exchange)
		tick_reading(http);
	else if (http->state == READING)
		tick_idle(http);
}

static int64_t http1_idle_since(const struct engine *engine)
{
	const struct http1 *http = (const struct http1 *)engine;
	bool has_head = http->state != READING || (http->exchange && http->head_is_read);

	return has_head ? INT64_MAX : http->idle_since_ns;
}

static void http1_stop(struct engine *engine)
{
	struct http1 *http = http1_of(engine);

	http->is_stopping = true;
	if (http->state == READING && !http->exchange)
		engine->is_done = true;
}

static void http1_free(struct engine *engine)
{
	struct http1 *http = http1_of(engine);

	if (http->state == WAITING) {
		engine_abandon(http->exchange);
		http->exchange->engine = NULL;
	} else if (http->exchange) {
		exchange_free(http->exchange);
	}
	strbuf_free(&http->target);
	strbuf_free(&http->name);
	strbuf_free(&http->value);
	strbuf_free(&http->out);
	free(http);
}

static const struct engine_ops http1_ops = {
	.feed = http1_feed,
	.end = http1_end,
	.pull = http1_pull,
	.answer = http1_answer,
	.tick = http1_tick,
	.idle_since = http1_idle_since,
	.stop = http1_stop,
	.free = http1_free,
};

struct engine *http1_new(struct engine_host *host)
{
	struct http1 *http = mem_new(struct http1);

	http->engine.ops = &http1_ops;
	http->engine.host = host;
	http->idle_since_ns = host->now_ns;
	llhttp_init(&http->parser, HTTP_REQUEST, &settings);
	http->parser.data = http;
	return &http->engine;
}
