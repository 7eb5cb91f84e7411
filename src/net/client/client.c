/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client (net) - calls over one HTTP/2 connection.
 *
 * A connection that the server has closed meanwhile is noticed before a call is sent on it; a call
 * that the server says it never looked at (GOAWAY below it, REFUSED_STREAM) is sent again once, on
 * a new connection. Any other failure is the caller's to retry, who knows whether that is safe.
 */
#include "net/client/client.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "base/whole_file.h"
#include "codec/archive/compress.h"
#include "codec/wire/base64.h"
#include "net/http/coding.h"
#include "net/http/grpc.h"
#include "net/http/lines.h"
#include "net/client/link.h"
#include "net/http/uri.h"

#define WINDOW_BYTES (8 * 1024 * 1024)
#define TIMEOUT_DEFAULT_NS (30 * CLOCK_NS_PER_S)
#define ANSWER_HEAD_BYTES_MAX (64u * 1024)
#define FIELDS_MAX 64u
#define TOKEN_BYTES_MAX 8192u
#define GZIP_LEVEL 1
#define RETRY_AFTER_S_MAX 86400

struct net_client {
	struct address address;
	char *socket_path; /* asked in place of the address; NULL = none */
	char authority[ADDRESS_HOST_BYTES + 16];
	struct tls *tls; /* NULL: plain text */
	struct net_access access;
	struct strbuf basic; /* "Basic ...", from the address; or empty */
	struct link link;
	nghttp2_session *session; /* NULL: not connected */
	struct attempt *attempt;  /* the call under way */
};

/* One try at a call: what is sent and what has come back. */
struct attempt {
	struct slice rest; /* of the body, or of the message, to send */
	const struct net_call *call;
	struct strbuf message; /* of a call that streams: the one being sent, framed */
	bool is_sent;	       /* a call that streams has no more */
	int send_code;	       /* negative: what it was to send failed */
	struct err send_err;
	int64_t deadline_at_ns;
	size_t body_bytes_max;
	int32_t stream;
	struct strbuf lines; /* all headers and trailers of the answer */
	int status;
	struct strbuf body;
	bool is_over, is_too_large, has_bad_head;
	uint32_t stream_error;
};

/* Takes `prefix` off the front of the text. */
static bool take_prefix(struct slice *text, const char *prefix)
{
	if (!slice_starts_with(*text, slice_of(prefix)))
		return false;
	*text = slice_tail(*text, strlen(prefix));
	return true;
}

/* Takes "user:password@" off the front; it becomes the header's value. */
static int take_user(struct net_client *client, struct slice *text, struct err *err)
{
	const char *at = memrchr(text->data, '@', text->len);
	struct strbuf user = { 0 };
	bool ok;

	if (!at)
		return 0;
	ok = uri_decode(slice_from(text->data, (size_t)(at - text->data)), false, &user);
	if (ok) {
		strbuf_add_text(&client->basic, "Basic ");
		base64_encode(strbuf_slice(&user), true, &client->basic);
		*text = slice_tail(*text, (size_t)(at - text->data) + 1);
	}
	strbuf_free(&user);
	return ok ? 0 : err_set(err, ERR_INVALID, "address: bad percent-encoding before '@'");
}

/* The address without a port means the scheme's. */
static int parse_host(struct slice text, bool has_scheme, unsigned port, struct address *ret,
		      struct err *err)
{
	char with_port[ADDRESS_HOST_BYTES + 16];
	const char *bracket = memrchr(text.data, ']', text.len);
	const char *colon = memrchr(text.data, ':', text.len);

	if (!has_scheme || (colon && (!bracket || colon > bracket)))
		return address_parse(text, ret, err);
	snprintf(with_port, sizeof(with_port), "%.*s:%u", SLICE_FMT(text), port);
	return address_parse(slice_of(with_port), ret, err);
}

static int parse_target(struct net_client *client, const char *address, bool *ret_tls,
			struct err *err)
{
	struct slice text = slice_of(address);
	bool is_https = take_prefix(&text, "https://");
	bool is_http = !is_https && take_prefix(&text, "http://");
	int code;

	*ret_tls = is_https || (!is_http && client->access.tls);
	if (text.len && text.data[text.len - 1] == '/')
		text.len--;
	code = take_user(client, &text, err);
	if (!code)
		code = parse_host(text, is_http || is_https, is_https ? 443 : 80, &client->address,
				  err);
	snprintf(client->authority, sizeof(client->authority), "%.*s", SLICE_FMT(text));
	return code;
}

/* A socket of this host: neither a name nor TLS. */
static bool take_socket(struct net_client *client, const char *address)
{
	struct slice path = slice_of(address);

	if (!take_prefix(&path, "unix:"))
		return false;
	client->socket_path = mem_strndup(path.data, path.len);
	snprintf(client->authority, sizeof(client->authority), "localhost");
	return true;
}

static int make_tls(struct net_client *client, struct err *err)
{
	const struct net_access *access = &client->access;
	struct strbuf ca = { 0 }, certificate = { 0 }, key = { 0 };
	struct tls_client_options options = { .trusts_everyone = access->trusts_everyone };
	int code = 0;

	if (!access->cert_file != !access->key_file)
		return err_set(
			err, ERR_INVALID,
			"a client certificate needs its key file, and the key its certificate");
	if (access->ca_file)
		code = tls_read_pem(access->ca_file, &ca, &options.ca, err);
	if (!code && access->cert_file)
		code = tls_read_pem(access->cert_file, &certificate, &options.certificate, err);
	if (!code && access->key_file)
		code = tls_read_pem(access->key_file, &key, &options.key, err);
	if (!code)
		code = tls_client_new(&options, &client->tls, err);
	strbuf_free(&ca);
	strbuf_free(&certificate);
	strbuf_wipe(&key);
	return code;
}

int net_client_new(const char *address, const struct net_access *access, struct net_client **ret,
		   struct err *err)
{
	struct net_client *client = mem_new(struct net_client);
	bool wants_tls;
	int code;

	link_init(&client->link);
	if (access)
		client->access = *access;
	if (take_socket(client, address)) {
		*ret = client;
		return 0;
	}
	code = parse_target(client, address, &wants_tls, err);
	if (!code && wants_tls)
		code = make_tls(client, err);
	if (code) {
		net_client_free(client);
		return code;
	}
	*ret = client;
	return 0;
}

static void disconnect(struct net_client *client)
{
	if (client->session)
		nghttp2_session_del(client->session);
	client->session = NULL;
	link_close(&client->link);
}

void net_client_free(struct net_client *client)
{
	if (!client)
		return;
	disconnect(client);
	tls_unref(client->tls);
	strbuf_free(&client->basic);
	free(client->socket_path);
	free(client);
}

/* The attempt that a frame of `stream` belongs to, or NULL. */
static struct attempt *attempt_of(void *context, int32_t stream)
{
	struct net_client *client = context;

	return client->attempt && client->attempt->stream == stream ? client->attempt : NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *context)
{
	struct attempt *attempt = attempt_of(context, frame->hd.stream_id);
	uint64_t status;

	(void)session;
	(void)flags;
	if (!attempt)
		return 0;
	if (slice_is(slice_from(name, name_len), ":status")) {
		if (slice_parse_u64(slice_from(value, value_len), &status))
			attempt->status = (int)status;
	} else if (attempt->lines.len + name_len + value_len > ANSWER_HEAD_BYTES_MAX) {
		attempt->has_bad_head = true;
	} else {
		lines_add(&attempt->lines, slice_from(name, name_len),
			  slice_from(value, value_len));
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t len, void *context)
{
	struct attempt *attempt = attempt_of(context, stream);

	(void)session;
	(void)flags;
	if (!attempt || attempt->is_too_large)
		return 0;
	if (len > attempt->body_bytes_max - attempt->body.len)
		attempt->is_too_large = true;
	else
		strbuf_add(&attempt->body, data, len);
	return 0;
}

/* The answer came while there is more to send: nobody wants it. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct attempt *attempt = attempt_of(context, frame->hd.stream_id);
	bool is_end = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
		      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);

	if (!attempt || !is_end || !attempt->call->next || attempt->is_sent)
		return 0;
	attempt->is_sent = true;
	return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					 NGHTTP2_CANCEL);
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct attempt *attempt = attempt_of(context, stream);

	(void)session;
	if (attempt) {
		attempt->is_over = true;
		attempt->stream_error = code;
	}
	return 0;
}

static int connect_to(struct net_client *client, int64_t deadline_at_ns, struct err *err)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, ANSWER_HEAD_BYTES_MAX },
	};
	nghttp2_session_callbacks *callbacks;
	int code = client->socket_path ? link_open_local(&client->link, client->socket_path,
							 deadline_at_ns, err)
				       : link_open(&client->link, &client->address, client->tls,
						   deadline_at_ns, err);

	if (code)
		return code;
	if (nghttp2_session_callbacks_new(&callbacks))
		abort(); /* out of memory: as mem.h */
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	if (nghttp2_session_client_new(&client->session, callbacks, client) ||
	    nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings,
				    sizeof(settings) / sizeof(settings[0])) ||
	    nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, 0,
						  WINDOW_BYTES))
		abort();
	nghttp2_session_callbacks_del(callbacks);
	return 0;
}

static int flush(struct net_client *client, int64_t deadline_at_ns, struct err *err)
{
	struct strbuf out = { 0 };
	const uint8_t *data;
	ssize_t len;
	int code = 0;

	do {
		strbuf_clear(&out);
		while (out.len < LINK_READ_BYTES &&
		       (len = nghttp2_session_mem_send(client->session, &data)) > 0)
			strbuf_add(&out, data, (size_t)len);
		code = link_send(&client->link, strbuf_slice(&out), deadline_at_ns, err);
	} while (!code && out.len >= LINK_READ_BYTES);
	strbuf_free(&out);
	return code;
}

static int receive(struct net_client *client, int64_t deadline_at_ns, struct err *err)
{
	struct slice bytes;
	int code = link_receive(&client->link, &bytes, deadline_at_ns, err);

	if (code)
		return code;
	if (nghttp2_session_mem_recv(client->session, (const uint8_t *)bytes.data, bytes.len) < 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "receive from \"%s\": the server does not speak HTTP/2",
			       client->authority);
	return 0;
}

/* True if the connection can take another call, after a look at what came in meanwhile. */
static bool is_usable(struct net_client *client)
{
	int code = 0;

	if (!client->session)
		return false;
	while (!code)
		code = receive(client, 0, NULL);
	return code == -ERR_DEADLINE && nghttp2_session_check_request_allowed(client->session);
}

/* The next message of a call that streams becomes what is to be sent. False when that failed. */
static bool next_message(struct attempt *attempt)
{
	const struct net_call *call = attempt->call;
	struct strbuf message = { 0 };
	int code;

	if (!call->next || attempt->rest.len || attempt->is_sent)
		return true;
	code = call->next(call->next_context, &message, &attempt->send_err);
	strbuf_clear(&attempt->message);
	if (code > 0)
		grpc_add_frame(&attempt->message, 0, strbuf_slice(&message));
	strbuf_free(&message);
	attempt->rest = strbuf_slice(&attempt->message);
	attempt->is_sent = code <= 0;
	attempt->send_code = code < 0 ? code : 0;
	return code >= 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t length,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct attempt *attempt = source->ptr;
	size_t len;

	(void)session;
	(void)stream;
	(void)context;
	if (!next_message(attempt))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	len = attempt->rest.len < length ? attempt->rest.len : length;
	if (len)
		memcpy(to, attempt->rest.data, len);
	attempt->rest = slice_tail(attempt->rest, len);
	if (!attempt->rest.len && (!attempt->call->next || attempt->is_sent))
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* How the client proves itself, if in any way. */
static int add_authorization(const struct net_client *client, struct strbuf *lines, struct err *err)
{
	const struct net_access *access = &client->access;
	struct strbuf value = { 0 };
	int code = 0;

	if (access->token_file) {
		strbuf_add_text(&value, "Bearer ");
		code = whole_file_read(access->token_file, TOKEN_BYTES_MAX, &value, err);
	} else if (access->token) {
		strbuf_addf(&value, "Bearer %s", access->token);
	} else {
		strbuf_add_slice(&value, strbuf_slice(&client->basic));
	}
	if (!code && value.len)
		lines_add(lines, SLICE_LITERAL("authorization"), slice_trim(strbuf_slice(&value)));
	strbuf_wipe(&value);
	return code;
}

/* The request's headers as lines; the pseudo-headers are added by send_request. */
static void add_request_lines(const struct net_call *call, struct strbuf *lines)
{
	struct slice more = slice_of(call->headers);
	struct net_header header;

	lines_addf(lines, "user-agent", "firn/%s", FIRN_VERSION);
	if (call->content_type)
		lines_add(lines, SLICE_LITERAL("content-type"), slice_of(call->content_type));
	if (call->grpc) {
		lines_addf(lines, "te", "trailers");
		lines_addf(lines, "grpc-accept-encoding", "%s", CODING_NAMES);
		lines_addf(lines, "grpc-timeout", "%lldm",
			   (long long)((call->timeout_ns ? call->timeout_ns : TIMEOUT_DEFAULT_NS) /
				       CLOCK_NS_PER_MS) %
				   100000000);
		if (call->compress)
			lines_addf(lines, "grpc-encoding", "gzip");
	} else if (call->compress) {
		lines_addf(lines, "content-encoding", "gzip");
	}
	while (lines_next(&more, &header))
		lines_add(lines, header.name, header.value);
}

static nghttp2_nv field_of(struct slice name, struct slice value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data,
			     name.len, value.len, NGHTTP2_NV_FLAG_NONE };
}

static int send_request(struct net_client *client, const struct net_call *call,
			struct attempt *attempt, struct err *err)
{
	const nghttp2_data_provider provider = { { .ptr = attempt }, read_body };
	nghttp2_nv fields[FIELDS_MAX];
	struct net_header header;
	struct strbuf lines = { 0 };
	struct slice rest;
	size_t count = 0;

	add_request_lines(call, &lines);
	if (add_authorization(client, &lines, err)) {
		strbuf_free(&lines);
		return -ERR_INVALID;
	}
	rest = strbuf_slice(&lines);
	fields[count++] = field_of(SLICE_LITERAL(":method"), slice_of(call->method));
	fields[count++] = field_of(SLICE_LITERAL(":scheme"),
				   client->tls ? SLICE_LITERAL("https") : SLICE_LITERAL("http"));
	fields[count++] = field_of(SLICE_LITERAL(":authority"), slice_of(client->authority));
	fields[count++] = field_of(SLICE_LITERAL(":path"), slice_of(call->path));
	while (count < FIELDS_MAX && lines_next(&rest, &header))
		fields[count++] = field_of(header.name, header.value);
	attempt->stream =
		nghttp2_submit_request(client->session, NULL, fields, count,
				       attempt->rest.len || call->next ? &provider : NULL, NULL);
	strbuf_free(&lines);
	if (attempt->stream < 0)
		return err_set(err, ERR_INVALID, "%s %s: %s", call->method, call->path,
			       nghttp2_strerror(attempt->stream));
	return 0;
}

/* Sends and receives until the answer is whole. */
static int converse(struct net_client *client, struct attempt *attempt, struct err *err)
{
	int code = flush(client, attempt->deadline_at_ns, err);

	while (!code && !attempt->is_over) {
		code = receive(client, attempt->deadline_at_ns, err);
		if (!code && (attempt->is_too_large || attempt->has_bad_head))
			return err_set(err, ERR_LIMIT,
				       "receive from \"%s\": the answer is larger than %zu bytes",
				       client->authority, attempt->body_bytes_max);
		if (!code)
			code = flush(client, attempt->deadline_at_ns, err);
	}
	return code;
}

/* One try. *ret_untouched: the server did not look at the call, so it may be sent again. */
static int try_call(struct net_client *client, const struct net_call *call, struct attempt *attempt,
		    bool *ret_untouched, struct err *err)
{
	int code = 0;

	*ret_untouched = false;
	if (!is_usable(client)) {
		disconnect(client);
		code = connect_to(client, attempt->deadline_at_ns, err);
		if (code)
			return code;
	}
	client->attempt = attempt;
	code = send_request(client, call, attempt, err);
	if (!code)
		code = converse(client, attempt, err);
	client->attempt = NULL;
	if (attempt->send_code) {
		if (err)
			*err = attempt->send_err;
		disconnect(client);
		return attempt->send_code;
	}
	if (!code && !attempt->status)
		code = err_set(err, ERR_UNAVAILABLE, "\"%s\" ended the call without an answer: %s",
			       client->authority, nghttp2_http2_strerror(attempt->stream_error));
	*ret_untouched =
		code && attempt->stream_error == NGHTTP2_REFUSED_STREAM && !attempt->call->next;
	if (code)
		disconnect(client);
	return code;
}

/* RFC 9110 section 10.2.3: seconds or a date. */
static int64_t parse_retry_after(struct slice value)
{
	struct tm utc = { 0 };
	uint64_t seconds = 0;
	char text[64];

	if (!slice_parse_u64(value, &seconds)) {
		int64_t wait;

		snprintf(text, sizeof(text), "%.*s", SLICE_FMT(value));
		if (!strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &utc))
			return 0;
		wait = (int64_t)timegm(&utc) - clock_real_ns() / CLOCK_NS_PER_S;
		seconds = wait > 0 ? (uint64_t)wait : 0;
	}
	return (int64_t)(seconds < RETRY_AFTER_S_MAX ? seconds : RETRY_AFTER_S_MAX) *
	       CLOCK_NS_PER_S;
}

/* Replaces the framed body of a gRPC answer by its one message. */
static int unframe(struct attempt *attempt, struct err *err)
{
	struct slice coding = lines_find(strbuf_slice(&attempt->lines), "grpc-encoding");
	struct strbuf message_buf = { 0 };
	struct slice message;
	bool is_compressed;
	int code = grpc_find_message(strbuf_slice(&attempt->body), &message, &is_compressed, err);

	if (code)
		return err_wrap(err, "answer");
	if (is_compressed)
		code = coding_decode(coding, message, attempt->body_bytes_max, &message_buf, err);
	else
		strbuf_add_slice(&message_buf, message);
	strbuf_free(&attempt->body);
	attempt->body = message_buf;
	return code ? err_wrap(err, "answer") : 0;
}

static int read_reply(const struct net_call *call, struct attempt *attempt, struct net_reply *ret,
		      struct err *err)
{
	struct slice lines = strbuf_slice(&attempt->lines);
	struct slice type = lines_find(lines, "content-type");
	struct slice details = lines_find(lines, "grpc-status-details-bin");
	int64_t retry_after_ns = parse_retry_after(lines_find(lines, "retry-after"));
	uint64_t grpc_status;
	bool has_grpc_status = slice_parse_u64(lines_find(lines, "grpc-status"), &grpc_status);
	int code = 0;

	if (call->grpc && has_grpc_status && !grpc_status)
		code = unframe(attempt, err);
	if (code)
		return code;
	if (details.len && !retry_after_ns)
		retry_after_ns = grpc_parse_retry_details(details);
	*ret = (struct net_reply){
		.status = attempt->status,
		.grpc_status = has_grpc_status ? (int)grpc_status : -1,
		.retry_after_ns = retry_after_ns,
		.body = attempt->body,
	};
	attempt->body = (struct strbuf){ 0 };
	lines = strbuf_slice(&attempt->lines);
	grpc_decode_message(lines_find(lines, "grpc-message"), ret->grpc_message,
			    sizeof(ret->grpc_message));
	snprintf(ret->content_type, sizeof(ret->content_type), "%.*s", SLICE_FMT(type));
	return 0;
}

/* The body as it goes out: framed for gRPC, compressed when asked. */
static void pack_body(const struct net_call *call, struct strbuf *out)
{
	struct strbuf packed = { 0 };
	struct slice body = call->body;

	if (call->compress) {
		compress_gzip(body, GZIP_LEVEL, &packed);
		body = strbuf_slice(&packed);
	}
	if (call->grpc)
		grpc_add_frame(out, call->compress ? GRPC_FLAG_COMPRESSED : 0, body);
	else
		strbuf_add_slice(out, body);
	strbuf_free(&packed);
}

void net_client_end_by(struct net_client *client, int64_t at_ns)
{
	link_end_by(&client->link, at_ns);
}

int net_client_call(struct net_client *client, const struct net_call *call, struct net_reply *ret,
		    struct err *err)
{
	int64_t timeout_ns = call->timeout_ns ? call->timeout_ns : TIMEOUT_DEFAULT_NS;
	int64_t deadline_at_ns = clock_monotonic_ns() + timeout_ns;
	struct strbuf body = { 0 };
	bool is_untouched = true;
	int code = 0;

	assert(!client->attempt);
	if (!call->next)
		pack_body(call, &body);
	for (int i = 0; i < 2 && is_untouched; i++) {
		struct attempt attempt = {
			.rest = strbuf_slice(&body),
			.call = call,
			.deadline_at_ns = deadline_at_ns,
			.body_bytes_max =
				call->body_bytes_max + (call->grpc ? GRPC_FRAME_BYTES : 0),
		};

		code = try_call(client, call, &attempt, &is_untouched, err);
		if (!code)
			code = read_reply(call, &attempt, ret, err);
		strbuf_free(&attempt.lines);
		strbuf_free(&attempt.body);
		strbuf_free(&attempt.message);
	}
	strbuf_free(&body);
	return code;
}
