/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/exchange.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/wire/base64.h"
#include "net/http/coding.h"
#include "net/http/hosts.h"
#include "net/http/lines.h"
#include "net/http/response.h"
#include "net/http/route.h"
#include "net/http/traffic.h"
#include "net/http/uri.h"

/* What gRPC framing adds to a message; gRPC-Web clients may send a few trailers too. */
#define RPC_OVERHEAD_BYTES (GRPC_FRAME_BYTES + 1024u)
#define DECODE_FIRST_FACTOR 8u /* decoded bytes reserved at first per received byte */
#define DECODE_FIRST_BYTES 65536u
#define HOST_SHOWN_BYTES 256
#define CONNECT_TIMEOUT_DIGITS 10	     /* what its protocol allows */
#define STREAM_AHEAD_BYTES ((size_t)2 << 20) /* of a streamed request, beyond one message */

static void answer_refusal(struct exchange *exchange, enum refusal refusal, const char *detail);

struct exchange *exchange_new(struct http_service *service, enum net_protocol protocol,
			      struct slice peer, int64_t now_ns)
{
	struct exchange *exchange = mem_new(struct exchange);

	exchange->service = service;
	exchange->request.protocol = protocol;
	exchange->request.peer = slice_from(mem_strndup(peer.data, peer.len), peer.len);
	exchange->request.cancelled = &exchange->cancelled;
	exchange->request.answers = &service->answers;
	pace_begin(&exchange->pace, now_ns);
	return exchange;
}

static void give_body(struct exchange *exchange)
{
	strbuf_free(&exchange->body);
	budget_give(&exchange->service->budget, exchange->charged_bytes);
	exchange->charged_bytes = 0;
}

void exchange_free(struct exchange *exchange)
{
	if (exchange->stream_state)
		exchange->route->stream->abandon(exchange->route->context, exchange->stream_state);
	budget_give(&exchange->service->budget,
		    exchange->more.len + exchange->replies.len + exchange->replying.len);
	strbuf_free(&exchange->more);
	strbuf_free(&exchange->replies);
	strbuf_free(&exchange->replying);
	give_body(exchange);
	budget_give(&exchange->service->answers, exchange->answer_bytes);
	head_free(&exchange->head);
	strbuf_free(&exchange->path);
	strbuf_free(&exchange->answer.lines);
	strbuf_free(&exchange->answer.trailers);
	strbuf_free(&exchange->answer.owned);
	free((void *)(uintptr_t)exchange->request.peer.data);
	free(exchange);
}

static void add_missing(struct slice more, struct strbuf *lines)
{
	struct net_header header;

	while (lines_next(&more, &header))
		if (!lines_have(strbuf_slice(lines), header.name))
			lines_add(lines, header.name, header.value);
}

/* What the server's owner wants in each answer, and what each should have. */
static void add_headers(struct exchange *exchange)
{
	struct strbuf *lines = &exchange->answer.lines;

	add_missing(exchange->service->headers, lines);
	add_missing(SLICE_LITERAL("x-content-type-options: nosniff\r\n"
				  "cache-control: no-store\r\n"),
		    lines);
}

/* The answer is one of any number of messages, which may be none. */
static void begin_answer(struct exchange *exchange)
{
	if (exchange->answer.is_begun)
		return;
	response_begin(&exchange->request, &exchange->answer);
	add_headers(exchange);
}

/* Adds a message to what is sent before the answer. */
static void reply(struct exchange *exchange, struct slice message)
{
	size_t had = exchange->replies.len;

	assert(exchange->route->stream->replies);
	begin_answer(exchange);
	grpc_add_frame(&exchange->replies, 0, message);
	budget_force(&exchange->service->budget, exchange->replies.len - had);
}

bool exchange_take_replies(struct exchange *exchange)
{
	strbuf_add_slice(&exchange->replying, strbuf_slice(&exchange->replies));
	strbuf_clear(&exchange->replies);
	return exchange->replied_bytes < exchange->replying.len;
}

static size_t read_some(struct slice rest, uint8_t *to, size_t length)
{
	if (rest.len > length)
		rest.len = length;
	if (rest.len)
		memcpy(to, rest.data, rest.len);
	return rest.len;
}

size_t exchange_read(struct exchange *exchange, uint8_t *to, size_t length, bool *ret_is_end)
{
	struct strbuf *replying = &exchange->replying;
	size_t read =
		read_some(slice_tail(strbuf_slice(replying), exchange->replied_bytes), to, length);
	size_t more;

	exchange->replied_bytes += read;
	*ret_is_end = false;
	if (exchange->replied_bytes < replying->len)
		return read;
	budget_give(&exchange->service->budget, replying->len);
	strbuf_clear(replying);
	exchange->replied_bytes = 0;
	if (exchange->phase != EXCHANGE_ANSWER)
		return read;
	more = read_some(slice_tail(exchange->answer.body, exchange->answered_bytes), to + read,
			 length - read);
	exchange->answered_bytes += more;
	*ret_is_end =
		exchange->answered_bytes == exchange->answer.body.len && !exchange->is_watched;
	return read + more;
}

/* Pays for the answer as it is now; what was paid for more than that is given back. */
static bool pay_answer(struct exchange *exchange, struct net_response *response)
{
	struct budget *budget = &exchange->service->answers;
	size_t bytes = exchange->answer.owned.len;

	if (exchange->answer.is_begun) {
		budget_force(budget, bytes);
	} else {
		if (!net_response_pay(response, bytes))
			return false;
		budget_give(budget, response->paid_bytes - bytes);
		response->paid_bytes = 0;
	}
	exchange->answer_bytes = bytes;
	return true;
}

/* Encodes the response and trades the request's share of the budget for the answer's. */
static void answer(struct exchange *exchange, struct net_response *response)
{
	response_encode(&exchange->request, response, &exchange->answer);
	if (!exchange->answer.is_begun)
		add_headers(exchange);
	give_body(exchange);
	if (pay_answer(exchange, response)) {
		traffic_count_answer(&exchange->request, response);
		return;
	}
	strbuf_free(&exchange->answer.lines);
	strbuf_free(&exchange->answer.trailers);
	strbuf_free(&exchange->answer.owned);
	exchange->answer = (struct http_answer){ 0 };
	answer_refusal(exchange, REFUSAL_ANSWERS, NULL);
}

static void answer_refusal(struct exchange *exchange, enum refusal refusal, const char *detail)
{
	struct net_response response;

	refusal_count(refusal);
	response_init(&response, &exchange->service->answers);
	response_refuse(&exchange->request, refusal, detail, &response);
	if (refusal == REFUSAL_METHOD) {
		struct strbuf methods = { 0 };

		route_add_methods(exchange->service->routes, exchange->service->routes_count,
				  exchange->request.path, &methods);
		lines_add(&response.headers, SLICE_LITERAL("allow"), strbuf_slice(&methods));
		strbuf_free(&methods);
	}
	answer(exchange, &response);
	response_fini(&response);
}

void exchange_refuse(struct exchange *exchange, enum refusal refusal, const char *detail)
{
	assert(exchange->phase != EXCHANGE_ANSWER);
	answer_refusal(exchange, refusal, detail);
	exchange->phase = EXCHANGE_ANSWER;
}

/* "/prefix/api" -> "/api"; paths without the prefix are taken as they are. */
static struct slice without_prefix(const struct http_service *service, struct slice path)
{
	struct slice prefix = service->path_prefix;

	if (!prefix.len || !slice_starts_with(path, prefix) ||
	    (path.len > prefix.len && path.data[prefix.len] != '/'))
		return path;
	path = slice_tail(path, prefix.len);
	return path.len ? path : SLICE_LITERAL("/");
}

/* How long the client waits: as gRPC says it, or Connect. False: nobody can tell. */
static bool read_patience(struct net_request *request, int64_t now_ns)
{
	struct slice grpc = net_request_header(request, "grpc-timeout");
	struct slice connect = net_request_header(request, "connect-timeout-ms");
	int64_t timeout_ns;
	uint64_t ms;

	if (request->rpc != NET_RPC_NONE && grpc.len) {
		if (!grpc_parse_timeout(grpc, &timeout_ns))
			return false;
	} else if (request->rpc == NET_RPC_NONE && connect.len) {
		if (connect.len > CONNECT_TIMEOUT_DIGITS || !slice_parse_u64(connect, &ms))
			return false;
		timeout_ns = (int64_t)ms * CLOCK_NS_PER_MS;
	} else {
		return true;
	}
	if (__builtin_add_overflow(now_ns, timeout_ns, &request->deadline_at_ns))
		request->deadline_at_ns = 0;
	return true;
}

/* Fills the request from the head. A refusal, or REFUSAL_COUNT when all is well. */
static enum refusal read_head(struct exchange *exchange, int64_t now_ns)
{
	struct net_request *request = &exchange->request;
	struct slice path;

	head_seal(&exchange->head);
	request->headers = exchange->head.headers;
	request->headers_count = exchange->head.fields_count;
	request->method = head_text(&exchange->head, exchange->head.method);
	request->rpc = grpc_kind(net_request_header(request, "content-type"));
	if (!uri_split(head_text(&exchange->head, exchange->head.target), &path, &request->query) ||
	    !uri_decode(path, false, &exchange->path) || !uri_is_decodable(request->query))
		return REFUSAL_MALFORMED;
	request->path = without_prefix(exchange->service, strbuf_slice(&exchange->path));
	return read_patience(request, now_ns) ? REFUSAL_COUNT : REFUSAL_MALFORMED;
}

/* True if the client calls the server by a name that it has. A probe may call it anything. */
static bool is_host_known(const struct exchange *exchange, const struct net_route *route)
{
	const struct hosts *hosts = exchange->service->hosts;
	const struct net_request *request = &exchange->request;
	struct slice authority;
	bool is_named = false, is_known = true;

	if (!hosts || (route && route->role == NET_ROLE_PROBE))
		return true;
	for (size_t i = 0; i < request->headers_count; i++) {
		if (!slice_is(request->headers[i].name, "host"))
			continue;
		is_named = true;
		is_known &= hosts_permit(hosts, request->headers[i].value);
	}
	/* A host name in the request target takes precedence (RFC 9112, section 3.2.2). */
	if (uri_authority(head_text(&exchange->head, exchange->head.target), &authority))
		is_known &= hosts_permit(hosts, authority);
	return is_named ? is_known : hosts_permit(hosts, (struct slice){ 0 });
}

static void refuse_host(struct exchange *exchange)
{
	struct slice host = net_request_header(&exchange->request, "host");
	char detail[2 * HOST_SHOWN_BYTES];

	if (host.len > HOST_SHOWN_BYTES)
		host.len = HOST_SHOWN_BYTES;
	snprintf(detail, sizeof(detail),
		 "\"%.*s\" is not a name of this server, which requires no login: a web page "
		 "could have pointed that name here; if you want to use the name, start with "
		 "--web-allowed-host %.*s",
		 SLICE_FMT(host), SLICE_FMT(host));
	exchange_refuse(exchange, REFUSAL_HOST, detail);
}

/* What can be said before the body. A refusal, or REFUSAL_COUNT when all is well. */
static enum refusal check_head(struct exchange *exchange)
{
	struct net_request *request = &exchange->request;
	struct route_match match;

	if (request->rpc == NET_RPC_GRPC && request->protocol == NET_HTTP1) {
		request->rpc = NET_RPC_NONE;
		return REFUSAL_VERSION;
	}
	match = route_find(exchange->service->routes, exchange->service->routes_count,
			   request->method, request->path);
	if (!is_host_known(exchange, match.route))
		return REFUSAL_HOST;
	if (!match.route)
		return match.path_exists ? REFUSAL_METHOD : REFUSAL_NO_ROUTE;
	if (match.route->stream &&
	    (request->rpc != NET_RPC_GRPC ||
	     !coding_is_identity(net_request_header(request, "content-encoding"))))
		return REFUSAL_UNARY;
	if (!match.route->ignores_body &&
	    (!coding_is_known(net_request_header(request, "content-encoding")) ||
	     (request->rpc != NET_RPC_NONE &&
	      !coding_is_known(net_request_header(request, "grpc-encoding")))))
		return REFUSAL_CODING;
	exchange->route = match.route;
	return REFUSAL_COUNT;
}

/* Whether the request may be made. A refusal, or REFUSAL_COUNT. */
static enum refusal authorize(struct exchange *exchange, bool at_once)
{
	struct http_service *service = exchange->service;
	int status;

	if (!service->authorize || exchange->is_admitted)
		return REFUSAL_COUNT;
	status = service->authorize(service->authorize_context, &exchange->request,
				    exchange->route->role, at_once);
	exchange->is_admitted = status == 200;
	if (exchange->is_admitted || (at_once && !status))
		return REFUSAL_COUNT;
	return status == 401   ? REFUSAL_UNAUTHENTICATED
	       : status == 429 ? REFUSAL_LOGINS
			       : REFUSAL_FORBIDDEN;
}

/* The most bytes the body may have on the wire. */
static size_t wire_bytes_max(const struct exchange *exchange)
{
	size_t bytes = exchange->route->body_bytes_max;
	size_t budget_bytes = (size_t)exchange->service->budget.max_bytes;

	if (bytes > budget_bytes)
		bytes = budget_bytes;
	if (exchange->request.rpc == NET_RPC_NONE)
		return bytes;
	bytes += RPC_OVERHEAD_BYTES;
	if (exchange->route->stream)
		bytes += STREAM_AHEAD_BYTES;
	if (exchange->request.rpc == NET_RPC_GRPC_WEB_TEXT)
		bytes += bytes / 3 + RPC_OVERHEAD_BYTES;
	return bytes;
}

static bool charge(struct exchange *exchange, size_t bytes)
{
	if (!budget_take(&exchange->service->budget, bytes))
		return false;
	exchange->charged_bytes += bytes;
	return true;
}

void exchange_begin_body(struct exchange *exchange, int64_t length, int64_t now_ns)
{
	enum refusal refusal = read_head(exchange, now_ns);

	assert(exchange->phase == EXCHANGE_HEAD);
	if (refusal == REFUSAL_COUNT)
		refusal = check_head(exchange);
	if (refusal == REFUSAL_COUNT)
		refusal = authorize(exchange, true);
	if (refusal == REFUSAL_COUNT) {
		exchange->body_bytes_max = wire_bytes_max(exchange);
		if (length > 0 && (uint64_t)length > exchange->body_bytes_max)
			refusal = REFUSAL_BODY_BYTES;
		else if (!charge(exchange, sizeof(*exchange) + head_cost(&exchange->head)))
			refusal = REFUSAL_INFLIGHT;
	}
	if (refusal == REFUSAL_HOST)
		refuse_host(exchange);
	else if (refusal != REFUSAL_COUNT)
		exchange_refuse(exchange, refusal, NULL);
	if (refusal != REFUSAL_COUNT)
		return;
	exchange->phase = EXCHANGE_BODY;
	exchange->is_parked = length != 0 && budget_is_tight(&exchange->service->budget);
	pace_begin(&exchange->pace, now_ns);
}

void exchange_add_body(struct exchange *exchange, struct slice bytes, int64_t now_ns)
{
	assert(exchange->phase == EXCHANGE_BODY);
	pace_move(&exchange->pace, now_ns, bytes.len);
	if (bytes.len > exchange->body_bytes_max - exchange->body.len - exchange->ignored_bytes)
		exchange_refuse(exchange, REFUSAL_BODY_BYTES, NULL);
	else if (exchange->route->ignores_body)
		exchange->ignored_bytes += bytes.len;
	else if (!charge(exchange, bytes.len))
		exchange_refuse(exchange, REFUSAL_INFLIGHT, NULL);
	else
		strbuf_add_slice(&exchange->body, bytes);
}

bool exchange_is_stream(const struct exchange *exchange)
{
	return exchange->route && exchange->route->stream;
}

bool exchange_has_message(const struct exchange *exchange)
{
	struct slice body = strbuf_slice(&exchange->body), message;
	unsigned flags;

	return grpc_take_frame(&body, &flags, &message);
}

void exchange_add_more(struct exchange *exchange, struct slice bytes)
{
	assert(exchange->phase == EXCHANGE_RUNNING && exchange_is_stream(exchange));
	if (exchange->is_over_budget || !budget_take(&exchange->service->budget, bytes.len))
		exchange->is_over_budget = true;
	else
		strbuf_add_slice(&exchange->more, bytes);
}

void exchange_resume(struct exchange *exchange, int64_t now_ns)
{
	assert(exchange->phase == EXCHANGE_BODY);
	exchange->wants_more = false;
	exchange->charged_bytes += exchange->more.len;
	strbuf_add_slice(&exchange->body, strbuf_slice(&exchange->more));
	strbuf_clear(&exchange->more);
	pace_begin(&exchange->pace, now_ns);
	if (exchange->is_over_budget)
		exchange_refuse(exchange, REFUSAL_INFLIGHT, NULL);
	else if (exchange->body.len > exchange->body_bytes_max)
		exchange_refuse(exchange, REFUSAL_BODY_BYTES, NULL);
}

/* A refusal for bytes that would not decode. */
static enum refusal refusal_of(int code)
{
	switch (-code) {
	case ERR_LIMIT:
		return REFUSAL_BODY_BYTES;
	case ERR_UNSUPPORTED:
		return REFUSAL_STREAMING;
	case ERR_NO_MEMORY:
		return REFUSAL_INFLIGHT;
	default:
		return REFUSAL_MALFORMED;
	}
}

/* Decodes `bytes` into `out`, paying for as much as comes out and a little at a time. */
static int decode_paid(struct exchange *exchange, struct slice coding, struct slice bytes,
		       size_t bytes_max, struct strbuf *out, struct err *err)
{
	struct budget *budget = &exchange->service->budget;
	size_t room = bytes.len * DECODE_FIRST_FACTOR + DECODE_FIRST_BYTES;
	int code;

	for (;; room *= DECODE_FIRST_FACTOR) {
		if (room > bytes_max)
			room = bytes_max;
		if (!budget_take(budget, room))
			return err_set(err, ERR_NO_MEMORY, "%s",
				       refusal_info(REFUSAL_INFLIGHT)->text);
		code = coding_decode(coding, bytes, room, out, err);
		if (code != -ERR_LIMIT || room == bytes_max)
			break;
		budget_give(budget, room);
	}
	budget_give(budget, room - out->len);
	exchange->charged_bytes += out->len;
	return code;
}

/* Puts `decoded` in the place of the body; the old bytes' share of the budget goes back. */
static void replace_body(struct exchange *exchange, struct strbuf *decoded)
{
	budget_give(&exchange->service->budget, exchange->body.len);
	exchange->charged_bytes -= exchange->body.len;
	strbuf_free(&exchange->body);
	exchange->body = *decoded;
}

static int decode_content(struct exchange *exchange, struct err *err)
{
	struct slice coding = net_request_header(&exchange->request, "content-encoding");
	struct strbuf decoded = { 0 };
	int code;

	if (coding_is_identity(coding) || !exchange->body.len)
		return 0;
	code = decode_paid(exchange, coding, strbuf_slice(&exchange->body),
			   exchange->body_bytes_max, &decoded, err);
	if (code) {
		strbuf_free(&decoded);
		return code;
	}
	replace_body(exchange, &decoded);
	return 0;
}

static int decode_text(struct exchange *exchange, struct err *err)
{
	struct strbuf decoded = { 0 };
	size_t bytes_max = exchange->body.len / 4 * 3 + 3;

	if (!charge(exchange, bytes_max))
		return err_set(err, ERR_NO_MEMORY, "%s", refusal_info(REFUSAL_INFLIGHT)->text);
	if (!base64_decode(strbuf_slice(&exchange->body), &decoded)) {
		strbuf_free(&decoded);
		return err_set(err, ERR_INVALID, "the body is not base64");
	}
	budget_give(&exchange->service->budget, bytes_max - decoded.len);
	exchange->charged_bytes -= bytes_max - decoded.len;
	replace_body(exchange, &decoded);
	return 0;
}

/* Finds the one message and decompresses it when its frame says so. */
static int decode_message(struct exchange *exchange, struct err *err)
{
	struct slice coding = net_request_header(&exchange->request, "grpc-encoding");
	struct strbuf decoded = { 0 };
	struct slice message;
	bool is_compressed;
	int code;

	code = grpc_find_message(strbuf_slice(&exchange->body), &message, &is_compressed, err);
	if (code)
		return code;
	if (!is_compressed) {
		exchange->request.body = message;
		return 0;
	}
	if (coding_is_identity(coding))
		return err_set(err, ERR_INVALID, "a compressed message without grpc-encoding");
	code = decode_paid(exchange, coding, message, exchange->route->body_bytes_max, &decoded,
			   err);
	if (code) {
		strbuf_free(&decoded);
		return code;
	}
	replace_body(exchange, &decoded);
	exchange->request.body = strbuf_slice(&exchange->body);
	return 0;
}

static int decode_body(struct exchange *exchange, struct err *err)
{
	int code;

	if (exchange->route->ignores_body)
		return 0;
	code = decode_content(exchange, err);
	if (!code && exchange->request.rpc == NET_RPC_GRPC_WEB_TEXT)
		code = decode_text(exchange, err);
	exchange->request.body = strbuf_slice(&exchange->body);
	if (!code && exchange->request.rpc != NET_RPC_NONE)
		code = decode_message(exchange, err);
	if (!code && exchange->request.body.len > exchange->route->body_bytes_max)
		code = err_set(err, ERR_LIMIT, "%s", refusal_info(REFUSAL_BODY_BYTES)->text);
	return code;
}

/* Whether the request may go on to its handler. A refusal, or REFUSAL_COUNT. */
static enum refusal admit(struct exchange *exchange)
{
	const struct net_request *request = &exchange->request;

	if (atomic_load(&exchange->is_abandoned))
		return REFUSAL_CANCELLED;
	if (request->deadline_at_ns && clock_monotonic_ns() >= request->deadline_at_ns)
		return REFUSAL_DEADLINE;
	return authorize(exchange, false);
}

/* Hands a decoded message over, and takes its reply. */
static int receive(struct exchange *exchange, struct slice message, struct err *err)
{
	const struct net_route *route = exchange->route;
	struct strbuf said = { 0 };
	int code;

	exchange->request.body = message;
	code = route->stream->message(route->context, &exchange->request, &exchange->stream_state,
				      &said, err);
	if (code >= 0 && said.len)
		reply(exchange, strbuf_slice(&said));
	strbuf_free(&said);
	return code;
}

/* Hands one message of a streamed request over. */
static int run_message(struct exchange *exchange, unsigned flags, struct slice message,
		       struct strbuf *decoded, struct err *err)
{
	struct slice coding = net_request_header(&exchange->request, "grpc-encoding");
	const struct net_route *route = exchange->route;
	int code = 0;

	if (flags & ~GRPC_FLAG_COMPRESSED)
		return err_set(err, ERR_INVALID, "gRPC frame with unknown flags 0x%02x", flags);
	if (flags && coding_is_identity(coding))
		return err_set(err, ERR_INVALID, "a compressed message without grpc-encoding");
	strbuf_clear(decoded);
	if (flags) {
		size_t charged_bytes = exchange->charged_bytes;

		code = decode_paid(exchange, coding, message, route->body_bytes_max, decoded, err);
		budget_give(&exchange->service->budget, exchange->charged_bytes - charged_bytes);
		exchange->charged_bytes = charged_bytes;
		message = strbuf_slice(decoded);
	}
	if (!code && message.len > route->body_bytes_max)
		code = err_set(err, ERR_LIMIT, "%s", refusal_info(REFUSAL_BODY_BYTES)->text);
	return code ? code : receive(exchange, message, err);
}

/* Hands the whole messages over and forgets them. 0, NET_STREAM_DONE, or an error. */
static int run_messages(struct exchange *exchange, struct err *err)
{
	struct slice rest = strbuf_slice(&exchange->body), message;
	struct strbuf decoded = { 0 };
	size_t taken;
	unsigned flags;
	int code = 0;

	while (!code && grpc_take_frame(&rest, &flags, &message))
		code = run_message(exchange, flags, message, &decoded, err);
	strbuf_free(&decoded);
	taken = exchange->body.len - rest.len;
	if (taken && rest.len)
		memmove(exchange->body.data, rest.data, rest.len);
	exchange->body.len = rest.len;
	exchange->charged_bytes -= taken;
	budget_give(&exchange->service->budget, taken);
	if (!code && exchange->is_last && rest.len)
		code = err_set(err, ERR_INVALID, "the stream ends within a message");
	return code;
}

static void run_stream(struct exchange *exchange)
{
	const struct net_route *route = exchange->route;
	struct net_response response;
	struct err err = { 0 };
	int code = run_messages(exchange, &err);

	exchange->wants_more = !code && !exchange->is_last;
	if (!exchange->wants_more) {
		response_init(&response, &exchange->service->answers);
		if (code < 0)
			net_response_error(&exchange->request, &response, &err);
		else
			route->stream->finish(route->context, &exchange->request,
					      exchange->stream_state, &response);
		if (route->stream->replies && !response.body.len && !response.grpc_status)
			begin_answer(exchange);
		if (code >= 0 && !route->stream->watch)
			exchange->stream_state = NULL;
		exchange->is_watched = code >= 0 && route->stream->watch && !response.grpc_status;
		answer(exchange, &response);
		response_fini(&response);
	}
}

static void run_handler(struct exchange *exchange)
{
	struct net_response response;

	response_init(&response, &exchange->service->answers);
	exchange->route->handler(exchange->route->context, &exchange->request, &response);
	answer(exchange, &response);
	response_fini(&response);
}

static void run_counted(struct exchange *exchange, void (*run)(struct exchange *))
{
	int64_t begun_ns = clock_monotonic_ns();

	traffic_add_handler(1);
	run(exchange);
	traffic_add_handler(-1);
	durations_note(exchange->service->durations, exchange->route,
		       clock_monotonic_ns() - begun_ns);
}

void exchange_run(struct exchange *exchange)
{
	struct err err = { 0 };
	enum refusal refusal;
	int code;

	refusal = admit(exchange);
	if (refusal != REFUSAL_COUNT) {
		answer_refusal(exchange, refusal, NULL);
		return;
	}
	if (exchange->route->stream) {
		run_counted(exchange, run_stream);
		return;
	}
	code = decode_body(exchange, &err);
	if (code)
		answer_refusal(exchange, refusal_of(code), err.message);
	else
		run_counted(exchange, run_handler);
}

bool exchange_watch(struct exchange *exchange)
{
	struct budget *budget = &exchange->service->answers;
	struct http_answer *answer = &exchange->answer;
	struct strbuf message = { 0 };
	bool is_other;

	exchange->route->stream->watch(exchange->route->context, exchange->stream_state, &message);
	is_other = !slice_equal(strbuf_slice(&message), slice_tail(answer->body, GRPC_FRAME_BYTES));
	if (is_other) {
		strbuf_clear(&answer->owned);
		grpc_add_frame(&answer->owned, 0, strbuf_slice(&message));
		answer->body = strbuf_slice(&answer->owned);
		exchange->answered_bytes = 0;
		budget_give(budget, exchange->answer_bytes);
		exchange->answer_bytes = answer->body.len;
		budget_force(budget, exchange->answer_bytes);
	}
	strbuf_free(&message);
	return is_other;
}
