/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/response.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "base/printable.h"
#include "codec/archive/compress.h"
#include "codec/wire/json.h"
#include "codec/wire/base64.h"
#include "net/http/coding.h"
#include "net/http/lines.h"

#define GZIP_LEVEL 3 /* answers are made for one reader and sent once */
#define RETRY_SOON_NS CLOCK_NS_PER_S
#define RETRY_LATER_NS (30 * CLOCK_NS_PER_S) /* a full disk does not empty itself at once */

/* How the kinds of failure look to clients. retry_ns 0: trying the same again does not help. */
static const struct {
	int http, grpc;
	int64_t retry_ns;
} statuses[ERR_CODES] = {
	[ERR_NONE] = { 500, GRPC_INTERNAL, 0 },
	[ERR_INVALID] = { 400, GRPC_INVALID_ARGUMENT, 0 },
	[ERR_NOT_FOUND] = { 404, GRPC_NOT_FOUND, 0 },
	[ERR_EXISTS] = { 409, GRPC_ALREADY_EXISTS, 0 },
	[ERR_LIMIT] = { 413, GRPC_RESOURCE_EXHAUSTED, 0 },
	[ERR_IO] = { 500, GRPC_INTERNAL, 0 },
	[ERR_CORRUPT] = { 500, GRPC_INTERNAL, 0 },
	[ERR_NO_SPACE] = { 507, GRPC_RESOURCE_EXHAUSTED, RETRY_LATER_NS },
	[ERR_READ_ONLY] = { 503, GRPC_UNAVAILABLE, RETRY_LATER_NS },
	[ERR_BUSY] = { 503, GRPC_UNAVAILABLE, RETRY_SOON_NS },
	[ERR_DENIED] = { 403, GRPC_PERMISSION_DENIED, 0 },
	[ERR_UNAVAILABLE] = { 503, GRPC_UNAVAILABLE, RETRY_SOON_NS },
	[ERR_CANCELLED] = { 499, GRPC_CANCELLED, 0 },
	[ERR_DEADLINE] = { 504, GRPC_DEADLINE_EXCEEDED, 0 },
	[ERR_NO_MEMORY] = { 429, GRPC_RESOURCE_EXHAUSTED, RETRY_SOON_NS },
	[ERR_UNSUPPORTED] = { 501, GRPC_UNIMPLEMENTED, 0 },
	[ERR_RATE] = { 429, GRPC_RESOURCE_EXHAUSTED, RETRY_SOON_NS },
	[ERR_QUOTA] = { 422, GRPC_INVALID_ARGUMENT, 0 },
};

void response_init(struct net_response *response, struct budget *memory)
{
	*response = (struct net_response){
		.memory = memory,
		.status = 200,
		.content_type = "application/octet-stream",
		.grpc_status = GRPC_OK,
	};
}

void response_fini(struct net_response *response)
{
	strbuf_free(&response->body);
	strbuf_free(&response->headers);
	budget_give(response->memory, response->paid_bytes);
	response->paid_bytes = 0;
}

static void write_json_error(struct net_response *response, const char *code, const char *message)
{
	struct json json;

	response->content_type = "application/json";
	response->static_body = (struct slice){ 0 };
	strbuf_clear(&response->body);
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_put_key(&json, "error");
	json_put_text(&json, message);
	json_put_key(&json, "code");
	json_put_text(&json, code);
	json_close_object(&json);
}

static void add_retry_details(struct net_response *response, int64_t retry_ns)
{
	struct strbuf details = { 0 };

	grpc_add_retry_details(&details, response->grpc_status, slice_of(response->message),
			       retry_ns);
	lines_add(&response->headers, SLICE_LITERAL("grpc-status-details-bin"),
		  strbuf_slice(&details));
	strbuf_free(&details);
}

/* Our own command line asks for text/plain: it prints the message as it is. */
static bool wants_text(const struct net_request *request)
{
	return slice_is(net_request_header(request, "accept"), "text/plain");
}

static void write_text_error(struct net_response *response, const char *message)
{
	response->content_type = "text/plain; charset=utf-8";
	strbuf_clear(&response->body);
	printable_add(&response->body, slice_of(message));
	strbuf_add_byte(&response->body, '\n');
}

static void fill_error(const struct net_request *request, struct net_response *response,
		       const char *code, const char *message)
{
	snprintf(response->message, sizeof(response->message), "%s", message);
	if (request->rpc == NET_RPC_NONE && wants_text(request))
		write_text_error(response, message);
	else if (request->rpc == NET_RPC_NONE)
		write_json_error(response, code, message);
	else
		strbuf_clear(&response->body);
}

/* What small answers have at most, as a rule. */
static size_t small_share(const struct budget *memory)
{
	return (size_t)memory->max_bytes / SMALL_ANSWERS_SHARE;
}

bool net_request_others_read(const struct net_request *request)
{
	return request->answers && atomic_load(&request->answers->used_bytes) >
					   (int64_t)(2 * small_share(request->answers));
}

bool net_response_pay(struct net_response *response, size_t bytes)
{
	size_t more = bytes > response->paid_bytes ? bytes - response->paid_bytes : 0;

	if (response->is_refused)
		return false;
	if (bytes <= SMALL_ANSWER_BYTES)
		budget_force(response->memory, more);
	else if (response->memory && !budget_take(response->memory, more) &&
		 !budget_take_alone(response->memory, more,
				    response->paid_bytes + small_share(response->memory)))
		response->is_refused = true;
	if (!response->is_refused)
		response->paid_bytes += more;
	return !response->is_refused;
}

void net_response_copy(const struct net_response *from, struct net_response *to)
{
	assert(!to->body.len);
	to->is_refused |= from->is_refused;
	if (!net_response_pay(to, from->body.len))
		return;
	to->status = from->status;
	to->content_type = from->content_type;
	to->precompressed = from->precompressed;
	strbuf_add_slice(&to->body, strbuf_slice(&from->body));
	strbuf_add_slice(&to->headers, strbuf_slice(&from->headers));
}

void net_response_error(const struct net_request *request, struct net_response *response,
			const struct err *err)
{
	enum err_code code = err->code < ERR_CODES ? err->code : ERR_NONE;
	int64_t retry_ns = statuses[code].retry_ns;

	response->status = request->rpc == NET_RPC_NONE ? statuses[code].http : 200;
	response->grpc_status = statuses[code].grpc;
	fill_error(request, response, err_code_name(code), err->message);
	if (!retry_ns)
		return;
	if (request->rpc == NET_RPC_NONE)
		lines_addf(&response->headers, "retry-after", "%d",
			   (int)(retry_ns / CLOCK_NS_PER_S));
	else
		add_retry_details(response, retry_ns);
}

void response_refuse(const struct net_request *request, enum refusal refusal, const char *detail,
		     struct net_response *response)
{
	const struct refusal_info *info = refusal_info(refusal);

	response->status = request->rpc == NET_RPC_NONE ? info->http : 200;
	response->grpc_status = info->grpc;
	fill_error(request, response, "refused", detail ? detail : info->text);
	if (refusal == REFUSAL_UNAUTHENTICATED && request->rpc == NET_RPC_NONE)
		lines_add(&response->headers, SLICE_LITERAL("www-authenticate"),
			  SLICE_LITERAL("Basic realm=\"firn\", charset=\"UTF-8\""));
	if (refusal == REFUSAL_CODING)
		lines_addf(&response->headers,
			   request->rpc == NET_RPC_NONE ? "accept-encoding"
							: "grpc-accept-encoding",
			   "%s", CODING_NAMES);
	if (info->retry_ns && request->rpc == NET_RPC_NONE)
		lines_addf(&response->headers, "retry-after", "%d",
			   (int)(info->retry_ns / CLOCK_NS_PER_S));
	else if (info->retry_ns)
		add_retry_details(response, info->retry_ns);
}

int response_http_of_grpc(int grpc_status)
{
	switch (grpc_status) {
	case GRPC_OK:
		return 200;
	case GRPC_UNKNOWN:
	case GRPC_INTERNAL:
		return 500;
	case GRPC_UNIMPLEMENTED:
		return 501;
	case GRPC_UNAVAILABLE:
		return 503;
	case GRPC_DEADLINE_EXCEEDED:
		return 504;
	default:
		return 400;
	}
}

/* What a handler that thinks in HTTP statuses means to a gRPC client. */
static int grpc_of_http(int status)
{
	if (status < 400)
		return GRPC_OK;
	for (size_t i = 1; i < ERR_CODES; i++)
		if (statuses[i].http == status)
			return statuses[i].grpc;
	return GRPC_UNKNOWN;
}

/* Headers that are the server's own to give. */
static bool is_reserved(struct slice name)
{
	static const char *const names[] = { "connection",   "content-length",
					     "content-type", "transfer-encoding",
					     "keep-alive",   "upgrade",
					     "trailer",	     "date" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_is(name, names[i]))
			return true;
	return false;
}

static void copy_lines(struct slice lines, struct strbuf *out)
{
	struct net_header header;

	while (lines_next(&lines, &header))
		if (!is_reserved(header.name))
			lines_add(out, header.name, header.value);
}

/* RFC 9110 section 5.6.7; strftime would ask the locale. */
static void add_date(struct strbuf *lines)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t now = (time_t)(clock_real_ns() / CLOCK_NS_PER_S);
	struct tm utc;

	gmtime_r(&now, &utc);
	lines_addf(lines, "date", "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", days + 3 * utc.tm_wday,
		   utc.tm_mday, months + 3 * utc.tm_mon, utc.tm_year + 1900, utc.tm_hour,
		   utc.tm_min, utc.tm_sec);
}

static struct slice body_of(const struct net_response *response)
{
	return response->static_body.data ? response->static_body : strbuf_slice(&response->body);
}

static void take_body(struct net_response *response, struct http_answer *ret)
{
	if (response->static_body.data) {
		ret->body = response->static_body;
		return;
	}
	ret->owned = response->body;
	response->body = (struct strbuf){ 0 };
	ret->body = strbuf_slice(&ret->owned);
}

/* Replaces the body by its gzip when the client takes it and it is smaller. */
static void compress_body(const struct net_request *request, const struct net_response *response,
			  struct http_answer *ret)
{
	struct strbuf packed = { 0 };

	if (response->precompressed || !coding_pays(response->content_type, ret->body.len))
		return;
	lines_addf(&ret->lines, "vary", "accept-encoding");
	if (!coding_accepts_gzip(net_request_header(request, "accept-encoding")))
		return;
	compress_gzip(ret->body, GZIP_LEVEL, &packed);
	if (packed.len >= ret->body.len) {
		strbuf_free(&packed);
		return;
	}
	strbuf_free(&ret->owned);
	ret->owned = packed;
	ret->body = strbuf_slice(&packed);
	lines_addf(&ret->lines, "content-encoding", "gzip");
}

static bool has_no_body(int status)
{
	return status < 200 || status == 204 || status == 304;
}

static void encode_http(const struct net_request *request, struct net_response *response,
			struct http_answer *ret)
{
	ret->status = response->status;
	ret->is_head = slice_is(request->method, "HEAD");
	add_date(&ret->lines);
	copy_lines(strbuf_slice(&response->headers), &ret->lines);
	if (has_no_body(response->status))
		return;
	lines_addf(&ret->lines, "content-type", "%s", response->content_type);
	take_body(response, ret);
	compress_body(request, response, ret);
	lines_addf(&ret->lines, "content-length", "%zu", ret->body.len);
}

static void add_ending(const struct net_response *response, struct strbuf *lines)
{
	struct strbuf message = { 0 };

	lines_addf(lines, "grpc-status", "%d", response->grpc_status);
	grpc_encode_message(slice_of(response->message), &message);
	if (message.len)
		lines_add(lines, SLICE_LITERAL("grpc-message"), strbuf_slice(&message));
	strbuf_free(&message);
}

static void add_rpc_type(const struct net_request *request, struct http_answer *ret)
{
	struct slice parameters;
	struct slice type =
		slice_cut(net_request_header(request, "content-type"), ';', &parameters);

	lines_add(&ret->lines, SLICE_LITERAL("content-type"), type);
}

/* The end of a call of which replies have gone out. */
static void end_grpc(const struct net_response *response, struct http_answer *ret)
{
	struct slice body = body_of(response);

	if (response->grpc_status == GRPC_OK && body.len)
		grpc_add_frame(&ret->owned, 0, body);
	ret->body = strbuf_slice(&ret->owned);
	add_ending(response, &ret->trailers);
	copy_lines(strbuf_slice(&response->headers), &ret->trailers);
}

/* An error ends a call with the first headers alone ("Trailers-Only"). */
static void encode_grpc(const struct net_request *request, struct net_response *response,
			struct http_answer *ret)
{
	if (ret->is_begun) {
		end_grpc(response, ret);
		return;
	}
	add_rpc_type(request, ret);
	copy_lines(strbuf_slice(&response->headers), &ret->lines);
	if (response->grpc_status != GRPC_OK) {
		add_ending(response, &ret->lines);
		return;
	}
	grpc_add_frame(&ret->owned, 0, body_of(response));
	ret->body = strbuf_slice(&ret->owned);
	add_ending(response, &ret->trailers);
}

/* gRPC-Web carries the ending as a last frame of the body. */
static void encode_grpc_web(const struct net_request *request, struct net_response *response,
			    struct http_answer *ret)
{
	struct strbuf ending = { 0 };

	add_rpc_type(request, ret);
	add_ending(response, &ending);
	if (response->grpc_status == GRPC_OK) {
		copy_lines(strbuf_slice(&response->headers), &ret->lines);
		grpc_add_frame(&ret->owned, 0, body_of(response));
	} else {
		copy_lines(strbuf_slice(&response->headers), &ending);
	}
	grpc_add_frame(&ret->owned, GRPC_FLAG_TRAILERS, strbuf_slice(&ending));
	strbuf_free(&ending);
	if (request->rpc == NET_RPC_GRPC_WEB_TEXT) {
		struct strbuf text = { 0 };

		base64_encode(strbuf_slice(&ret->owned), true, &text);
		strbuf_free(&ret->owned);
		ret->owned = text;
	}
	ret->body = strbuf_slice(&ret->owned);
	lines_addf(&ret->lines, "content-length", "%zu", ret->body.len);
}

void response_begin(const struct net_request *request, struct http_answer *ret)
{
	assert(request->rpc == NET_RPC_GRPC);
	ret->status = 200;
	ret->is_begun = true;
	add_rpc_type(request, ret);
}

void response_encode(const struct net_request *request, struct net_response *response,
		     struct http_answer *ret)
{
	ret->status = 200;
	if (request->rpc == NET_RPC_NONE) {
		encode_http(request, response, ret);
		return;
	}
	if (response->grpc_status == GRPC_OK)
		response->grpc_status = grpc_of_http(response->status);
	if (request->rpc == NET_RPC_GRPC)
		encode_grpc(request, response, ret);
	else
		encode_grpc_web(request, response, ret);
}
