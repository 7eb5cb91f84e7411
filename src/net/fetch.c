/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fetch.h"

#include <ctype.h>
#include <llhttp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "net/link.h"

#define REDIRECTIONS_MAX 5
#define HEAD_BYTES_MAX (64u * 1024)
#define CONNECT_NS (10 * CLOCK_NS_PER_S)
#define LOOK_NS (200 * CLOCK_NS_PER_MS) /* between looks at `cancelled` */

/* A URL's parts. */
struct target {
	bool is_tls;
	struct address address;
	char authority[ADDRESS_HOST_BYTES + 16];
	struct slice path; /* with the query; may be empty */
};

/* One request and its answer. */
struct exchange {
	const struct fetch *fetch;
	llhttp_t parser;
	struct strbuf name, value, location;
	size_t head_bytes;
	uint64_t bytes;
	bool is_over;
	int code; /* why a callback stopped the parser */
	struct err *err;
};

static int bad_url(const char *url, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "address \"%.200s\": %s", url, why);
}

static int parse_url(const char *url, struct target *ret, struct err *err)
{
	struct slice text = slice_of(url), authority, rest;
	char with_port[ADDRESS_HOST_BYTES + 32];
	bool is_http = slice_starts_with(text, SLICE_LITERAL("http://"));
	const char *bracket, *colon;

	ret->is_tls = slice_starts_with(text, SLICE_LITERAL("https://"));
	if (!is_http && !ret->is_tls)
		return bad_url(url, "it begins with neither http:// nor https://", err);
	if (text.len > FETCH_URL_BYTES_MAX)
		return bad_url(url, "it is too long", err);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return bad_url(url, "blanks and bytes beyond ASCII have to be escaped",
				       err);
	text = slice_tail(text, is_http ? strlen("http://") : strlen("https://"));
	authority = slice_cut(text, '/', &rest);
	ret->path = slice_tail(text, authority.len);
	if (authority.len >= ADDRESS_HOST_BYTES || !authority.len ||
	    memchr(authority.data, '@', authority.len) ||
	    memchr(authority.data, '?', authority.len))
		return bad_url(url, "no host and port", err);
	snprintf(ret->authority, sizeof(ret->authority), "%.*s", SLICE_FMT(authority));
	bracket = strrchr(ret->authority, ']');
	colon = strrchr(ret->authority, ':');
	if (colon && (!bracket || colon > bracket))
		return address_parse(authority, &ret->address, err);
	snprintf(with_port, sizeof(with_port), "%s:%d", ret->authority, ret->is_tls ? 443 : 80);
	return address_parse(slice_of(with_port), &ret->address, err);
}

int fetch_check_url(const char *url, struct err *err)
{
	struct target target;

	return parse_url(url, &target, err);
}

void fetch_add_path(struct strbuf *url, struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c && (isalnum(c) || strchr("/-._~+", c)))
			strbuf_add_byte(url, (char)c);
		else
			strbuf_addf(url, "%%%02X", c);
	}
}

static struct exchange *exchange_of(llhttp_t *parser)
{
	return parser->data;
}

static int stop(struct exchange *exchange, int code)
{
	exchange->code = code;
	return HPE_USER;
}

static int add_piece(struct exchange *exchange, struct strbuf *piece, const char *at, size_t length)
{
	exchange->head_bytes += length;
	if (exchange->head_bytes > HEAD_BYTES_MAX)
		return stop(exchange,
			    err_set(exchange->err, ERR_LIMIT, "the answer's head is too large"));
	strbuf_add(piece, at, length);
	return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t length)
{
	return add_piece(exchange_of(parser), &exchange_of(parser)->name, at, length);
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	return add_piece(exchange_of(parser), &exchange_of(parser)->value, at, length);
}

static int on_header(llhttp_t *parser)
{
	struct exchange *exchange = exchange_of(parser);

	if (!strcasecmp(strbuf_text(&exchange->name), "location")) {
		strbuf_clear(&exchange->location);
		strbuf_add_slice(&exchange->location, strbuf_slice(&exchange->value));
	}
	strbuf_clear(&exchange->name);
	strbuf_clear(&exchange->value);
	return 0;
}

static int on_head(llhttp_t *parser)
{
	struct exchange *exchange = exchange_of(parser);
	bool has_end = parser->flags & (F_CONTENT_LENGTH | F_CHUNKED);

	if (parser->status_code != 200)
		return 0;
	if (!has_end)
		return stop(exchange, err_set(exchange->err, ERR_UNAVAILABLE,
					      "the answer does not say where it ends"));
	if ((parser->flags & F_CONTENT_LENGTH) &&
	    parser->content_length > exchange->fetch->body_bytes_max)
		return stop(exchange,
			    err_set(exchange->err, ERR_LIMIT,
				    "%llu MB are more than the limit of %llu MB",
				    (unsigned long long)(parser->content_length >> 20),
				    (unsigned long long)(exchange->fetch->body_bytes_max >> 20)));
	if (exchange->fetch->begin) {
		uint64_t bytes = (parser->flags & F_CHUNKED) ? 0 : parser->content_length;
		int rc = exchange->fetch->begin(exchange->fetch->context, bytes, exchange->err);

		return rc ? stop(exchange, rc) : 0;
	}
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct exchange *exchange = exchange_of(parser);
	const struct fetch *fetch = exchange->fetch;
	int rc;

	if (parser->status_code != 200) /* a page that says why: not read to its end */
		return stop(exchange, 0);
	if (length > fetch->body_bytes_max - exchange->bytes)
		return stop(exchange, err_set(exchange->err, ERR_LIMIT,
					      "more comes than the limit of %llu MB",
					      (unsigned long long)(fetch->body_bytes_max >> 20)));
	exchange->bytes += length;
	rc = fetch->take(fetch->context, slice_from(at, length), exchange->err);
	return rc ? stop(exchange, rc) : 0;
}

static int on_end(llhttp_t *parser)
{
	if (parser->status_code < 200)
		return 0; /* the answer is still to come */
	exchange_of(parser)->is_over = true;
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

static bool is_cancelled(const struct fetch *fetch)
{
	return fetch->cancelled && atomic_load(fetch->cancelled);
}

/* As link_receive, but gives up when nobody wants the answer any more. */
static int receive(struct link *link, const struct fetch *fetch, struct slice *ret, struct err *err)
{
	for (;;) {
		int64_t until_ns = clock_monotonic_ns() + LOOK_NS;
		int rc;

		if (until_ns > fetch->deadline_at_ns)
			until_ns = fetch->deadline_at_ns;
		rc = link_receive(link, ret, until_ns, err);
		if (is_cancelled(fetch))
			return err_set(err, ERR_CANCELLED, "nobody waits for it any more");
		if (rc != -ERR_DEADLINE || clock_monotonic_ns() >= fetch->deadline_at_ns)
			return rc;
	}
}

static int converse(struct link *link, struct exchange *exchange, struct err *err)
{
	int rc = 0;

	while (!rc && !exchange->is_over) {
		struct slice bytes;
		llhttp_errno_t code;

		rc = receive(link, exchange->fetch, &bytes, err);
		if (rc)
			break;
		code = llhttp_execute(&exchange->parser, bytes.data, bytes.len);
		if (code == HPE_USER)
			return exchange->code;
		if (code != HPE_OK && code != HPE_PAUSED)
			rc = err_set(err, ERR_UNAVAILABLE, "the answer is not HTTP/1.1: %s",
				     llhttp_get_error_reason(&exchange->parser));
	}
	/* A status and no more is an answer, too. */
	return rc == -ERR_UNAVAILABLE && exchange->parser.status_code > 299 ? 0 : rc;
}

static int ask(const struct target *target, struct exchange *exchange, struct err *err)
{
	const struct fetch *fetch = exchange->fetch;
	int64_t connect_until_ns = clock_monotonic_ns() + CONNECT_NS;
	struct strbuf request = { 0 };
	struct link link;
	int rc;

	if (connect_until_ns > fetch->deadline_at_ns)
		connect_until_ns = fetch->deadline_at_ns;
	if (target->is_tls && !fetch->tls)
		return err_set(err, ERR_UNSUPPORTED, "https is not set up");
	link_init(&link);
	rc = link_open(&link, &target->address, target->is_tls ? fetch->tls : NULL,
		       connect_until_ns, err);
	if (rc)
		return rc;
	strbuf_addf(&request,
		    "GET %s%.*s HTTP/1.1\r\nhost: %s\r\nuser-agent: firn/%s\r\n"
		    "accept: */*\r\naccept-encoding: identity\r\nconnection: close\r\n\r\n",
		    target->path.len ? "" : "/", SLICE_FMT(target->path), target->authority,
		    FIRN_VERSION);
	rc = link_send(&link, strbuf_slice(&request), fetch->deadline_at_ns, err);
	if (!rc)
		rc = converse(&link, exchange, err);
	strbuf_free(&request);
	link_close(&link);
	return rc;
}

static bool is_redirection(const struct exchange *exchange)
{
	int status = exchange->parser.status_code;

	return exchange->location.len &&
	       (status == 301 || status == 302 || status == 303 || status == 307 || status == 308);
}

/* Where the answer points to becomes the URL: another one, or a path on the same server. */
static int redirect(const struct target *target, const struct exchange *exchange,
		    struct strbuf *url, struct err *err)
{
	struct slice location = strbuf_slice(&exchange->location);
	struct strbuf next = { 0 };
	int rc = 0;

	if (location.data[0] == '/' && !slice_starts_with(location, SLICE_LITERAL("//")))
		strbuf_addf(&next, "%s://%s", target->is_tls ? "https" : "http", target->authority);
	strbuf_add_slice(&next, location);
	if (target->is_tls && !slice_starts_with(strbuf_slice(&next), SLICE_LITERAL("https://")))
		rc = err_set(err, ERR_DENIED, "\"%s\" leads away from https", target->authority);
	strbuf_clear(url);
	strbuf_add_slice(url, strbuf_slice(&next));
	strbuf_free(&next);
	return rc;
}

/* One request; *ret_is_moved: the URL is another one now. */
static int try_url(const struct fetch *fetch, struct strbuf *url, int *ret_status,
		   bool *ret_is_moved, struct err *err)
{
	struct exchange exchange = { .fetch = fetch, .err = err };
	struct strbuf asked = { 0 };
	struct target target;
	int rc;

	strbuf_add_slice(&asked, strbuf_slice(url)); /* the target borrows from it */
	rc = parse_url(strbuf_text(&asked), &target, err);
	llhttp_init(&exchange.parser, HTTP_RESPONSE, &settings);
	exchange.parser.data = &exchange;
	if (!rc)
		rc = ask(&target, &exchange, err);
	*ret_is_moved = !rc && is_redirection(&exchange);
	if (*ret_is_moved)
		rc = redirect(&target, &exchange, url, err);
	else
		*ret_status = exchange.parser.status_code;
	strbuf_free(&asked);
	strbuf_free(&exchange.name);
	strbuf_free(&exchange.value);
	strbuf_free(&exchange.location);
	return rc;
}

int fetch_get(const struct fetch *fetch, int *ret_status, struct err *err)
{
	struct strbuf url = { 0 };
	bool is_moved = true;
	int status = 0, rc = 0;

	strbuf_add_text(&url, fetch->url);
	for (int i = 0; !rc && is_moved; i++) {
		if (i > REDIRECTIONS_MAX)
			rc = err_set(err, ERR_UNAVAILABLE, "more than %d redirections",
				     REDIRECTIONS_MAX);
		else
			rc = try_url(fetch, &url, &status, &is_moved, err);
	}
	strbuf_free(&url);
	if (!rc)
		*ret_status = status;
	return rc;
}
