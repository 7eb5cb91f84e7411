/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client/rest.h"

#include <ctype.h>
#include <llhttp.h>

#include "base/mem.h"
#include "net/client/link.h"
#include "net/client/url.h"
#include "net/http/lines.h"

#define HEAD_BYTES_MAX (64u * 1024)
#define CONNECT_NS (10 * CLOCK_NS_PER_S)

struct rest {
	struct url url;
	struct tls *tls;
	struct link link;
	bool is_open;
};

/* An answer being read. */
struct reading {
	llhttp_t parser;
	struct rest_answer *answer;
	struct strbuf name, value;
	uint64_t body_bytes_max;
	size_t head_bytes;
	bool is_head; /* the request was HEAD: no body comes */
	bool is_over;
	int code; /* why a callback stopped the parser */
	struct err *err;
};

static int stop(struct reading *reading, int code)
{
	reading->code = code;
	return HPE_USER;
}

static int add_head(struct reading *reading, struct strbuf *to, const char *at, size_t length)
{
	reading->head_bytes += length;
	if (reading->head_bytes > HEAD_BYTES_MAX)
		return stop(reading,
			    err_set(reading->err, ERR_LIMIT, "the answer's head is too large"));
	strbuf_add(to, at, length);
	return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t length)
{
	struct reading *reading = parser->data;

	return add_head(reading, &reading->name, at, length);
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	struct reading *reading = parser->data;

	return add_head(reading, &reading->value, at, length);
}

static int on_header(llhttp_t *parser)
{
	struct reading *reading = parser->data;

	for (size_t i = 0; i < reading->name.len; i++)
		reading->name.data[i] = (char)tolower((unsigned char)reading->name.data[i]);
	lines_add(&reading->answer->headers, strbuf_slice(&reading->name),
		  strbuf_slice(&reading->value));
	strbuf_clear(&reading->name);
	strbuf_clear(&reading->value);
	return 0;
}

static int too_large(struct reading *reading)
{
	return stop(reading, err_set(reading->err, ERR_LIMIT,
				     "the answer has more than the %llu bytes that are allowed",
				     (unsigned long long)reading->body_bytes_max));
}

static int on_head(llhttp_t *parser)
{
	struct reading *reading = parser->data;
	bool has_length = parser->flags & F_CONTENT_LENGTH;

	parser->upgrade = 0; /* nobody asked for another protocol */
	reading->answer->status = parser->status_code;
	if (parser->status_code < 200) { /* the answer is still to come */
		strbuf_clear(&reading->answer->headers);
		return 0;
	}
	reading->answer->length = has_length ? parser->content_length : 0;
	if (reading->is_head)
		return 1; /* llhttp: there is no body */
	if (reading->answer->length > reading->body_bytes_max)
		return too_large(reading);
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct reading *reading = parser->data;

	if (length > reading->body_bytes_max - reading->answer->body.len)
		return too_large(reading);
	strbuf_add(&reading->answer->body, at, length);
	return 0;
}

static int on_end(llhttp_t *parser)
{
	struct reading *reading = parser->data;

	if (reading->answer->status < 200)
		return 0;
	reading->is_over = true;
	return HPE_PAUSED; /* whatever comes behind it is nobody's */
}

static const llhttp_settings_t settings = {
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_header_value_complete = on_header,
	.on_headers_complete = on_head,
	.on_body = on_body,
	.on_message_complete = on_end,
};

int rest_new(const char *url, struct tls *tls, struct rest **ret, struct err *err)
{
	struct rest *rest = mem_new(struct rest);
	int rc = url_parse(url, &rest->url, err);

	if (!rc && rest->url.path.len > 1)
		rc = err_set(err, ERR_INVALID, "address \"%.200s\": a path is not expected", url);
	if (!rc && rest->url.is_tls && !tls)
		rc = err_set(err, ERR_UNSUPPORTED, "address \"%.200s\": https is not set up", url);
	if (rc) {
		free(rest);
		return rc;
	}
	rest->url.path = (struct slice){ 0 };
	rest->tls = rest->url.is_tls ? tls_ref(tls) : NULL;
	link_init(&rest->link);
	*ret = rest;
	return 0;
}

static void hang_up(struct rest *rest)
{
	link_close(&rest->link);
	rest->is_open = false;
}

void rest_free(struct rest *rest)
{
	if (!rest)
		return;
	hang_up(rest);
	tls_unref(rest->tls);
	free(rest);
}

const char *rest_authority(const struct rest *rest)
{
	return rest->url.authority;
}

void rest_end_by(struct rest *rest, int64_t at_ns)
{
	link_end_by(&rest->link, at_ns);
}

/* A kept connection that the server has closed, or on which it speaks unasked, is of no use. */
static bool is_usable(struct rest *rest)
{
	struct slice bytes;

	return rest->is_open && link_receive(&rest->link, &bytes, 0, NULL) == -ERR_DEADLINE;
}

static int connect_to(struct rest *rest, int64_t deadline_at_ns, struct err *err)
{
	int64_t until_ns = clock_monotonic_ns() + CONNECT_NS;
	int rc;

	if (is_usable(rest))
		return 0;
	hang_up(rest);
	rc = link_open(&rest->link, &rest->url.address, rest->tls,
		       until_ns < deadline_at_ns ? until_ns : deadline_at_ns, err);
	rest->is_open = !rc;
	return rc;
}

static int send_request(struct rest *rest, const struct rest_request *request, struct err *err)
{
	struct strbuf head = { 0 };
	int rc;

	strbuf_addf(&head, "%s %s HTTP/1.1\r\nhost: %s\r\nuser-agent: firn/%s\r\n", request->method,
		    request->target, rest->url.authority, FIRN_VERSION);
	strbuf_add_slice(&head, request->headers);
	if (request->body.len || !strcmp(request->method, "PUT") ||
	    !strcmp(request->method, "POST"))
		strbuf_addf(&head, "content-length: %zu\r\n", request->body.len);
	strbuf_add_text(&head, "\r\n");
	rc = link_send(&rest->link, strbuf_slice(&head), request->deadline_at_ns, err);
	strbuf_free(&head);
	for (size_t at = 0; !rc && at < request->body.len;) {
		struct slice piece = slice_tail(request->body, at);

		if (piece.len > LINK_READ_BYTES)
			piece.len = LINK_READ_BYTES;
		rc = link_send(&rest->link, piece, request->deadline_at_ns, err);
		at += piece.len;
	}
	return rc;
}

static int add_bytes(struct reading *reading, struct slice bytes, struct err *err)
{
	llhttp_errno_t code = llhttp_execute(&reading->parser, bytes.data, bytes.len);

	if (code == HPE_OK || reading->is_over)
		return 0;
	if (reading->code)
		return reading->code;
	return err_set(err, ERR_UNAVAILABLE, "the answer is not HTTP/1.1: %s",
		       llhttp_get_error_reason(&reading->parser));
}

/* The connection ended: fine for a body that says nothing of its length. */
static bool ends_here(struct reading *reading)
{
	return reading->answer->status >= 200 && !llhttp_finish(&reading->parser) &&
	       reading->is_over;
}

static int read_answer(struct rest *rest, const struct rest_request *request,
		       struct rest_answer *answer, bool *ret_keep, struct err *err)
{
	struct reading reading = { .answer = answer,
				   .body_bytes_max = request->body_bytes_max,
				   .is_head = !strcmp(request->method, "HEAD"),
				   .err = err };
	int rc = 0;

	llhttp_init(&reading.parser, HTTP_RESPONSE, &settings);
	reading.parser.data = &reading;
	while (!rc && !reading.is_over) {
		struct slice bytes;

		rc = link_receive(&rest->link, &bytes, request->deadline_at_ns, err);
		if (rc == -ERR_UNAVAILABLE && ends_here(&reading))
			rc = 0;
		else if (!rc)
			rc = add_bytes(&reading, bytes, err);
	}
	*ret_keep = !rc && llhttp_should_keep_alive(&reading.parser);
	strbuf_free(&reading.name);
	strbuf_free(&reading.value);
	return rc;
}

int rest_ask(struct rest *rest, const struct rest_request *request, struct rest_answer *ret,
	     struct err *err)
{
	struct rest_answer answer = { 0 };
	bool keep = false;
	int rc;

	memcpy(rest->link.stops, request->stops, sizeof(rest->link.stops));
	rc = connect_to(rest, request->deadline_at_ns, err);
	if (!rc) {
		rc = send_request(rest, request, err);
		if (!rc)
			rc = read_answer(rest, request, &answer, &keep, err);
		else if (read_answer(rest, request, &answer, &keep, NULL) == 0)
			rc = keep = 0; /* it refused the body before it had read it, and says why */
	}
	memset(rest->link.stops, 0, sizeof(rest->link.stops));
	if (!keep)
		hang_up(rest);
	if (rc) {
		rest_answer_free(&answer);
		return rc;
	}
	*ret = answer;
	return 0;
}

void rest_answer_free(struct rest_answer *answer)
{
	strbuf_free(&answer->headers);
	strbuf_free(&answer->body);
}

struct slice rest_header(const struct rest_answer *answer, const char *name)
{
	return lines_find(strbuf_slice(&answer->headers), name);
}
