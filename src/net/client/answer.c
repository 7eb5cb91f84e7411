/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client/answer.h"

#include <strings.h>

#define HEAD_BYTES_MAX (64u * 1024)

static struct answer *answer_of(llhttp_t *parser)
{
	return parser->data;
}

static int stop(struct answer *answer, int code)
{
	answer->code = code;
	return HPE_USER;
}

static int add_piece(struct answer *answer, struct strbuf *piece, const char *at, size_t length)
{
	answer->head_bytes += length;
	if (answer->head_bytes > HEAD_BYTES_MAX)
		return stop(answer, err_set(answer->err, ERR_LIMIT, "the head is too large"));
	strbuf_add(piece, at, length);
	return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t length)
{
	return add_piece(answer_of(parser), &answer_of(parser)->name, at, length);
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	return add_piece(answer_of(parser), &answer_of(parser)->value, at, length);
}

static int on_header(llhttp_t *parser)
{
	struct answer *answer = answer_of(parser);

	if (!strcasecmp(strbuf_text(&answer->name), "location")) {
		strbuf_clear(&answer->location);
		strbuf_add_slice(&answer->location, strbuf_slice(&answer->value));
	}
	strbuf_clear(&answer->name);
	strbuf_clear(&answer->value);
	return 0;
}

static int check_length(struct answer *answer, uint64_t length)
{
	if (length <= answer->sink->bytes_max)
		return 0;
	return stop(answer,
		    err_set(answer->err, ERR_LIMIT, "%llu bytes are more than the limit of %llu",
			    (unsigned long long)length,
			    (unsigned long long)answer->sink->bytes_max));
}

static int on_head(llhttp_t *parser)
{
	struct answer *answer = answer_of(parser);
	bool is_chunked = parser->flags & F_CHUNKED;
	bool has_length = parser->flags & F_CONTENT_LENGTH;
	int rc;

	parser->upgrade = 0; /* nobody asked for another protocol */
	answer->status = parser->status_code;
	if (answer->status != 200)
		return 0;
	if (!is_chunked && !has_length && !answer->sink->may_end_with_connection)
		return stop(answer, err_set(answer->err, ERR_UNAVAILABLE,
					    "the answer does not say where it ends"));
	if (has_length && check_length(answer, parser->content_length))
		return HPE_USER;
	if (!answer->sink->begin)
		return 0;
	rc = answer->sink->begin(answer->sink->context, is_chunked ? 0 : parser->content_length,
				 answer->err);
	return rc ? stop(answer, rc) : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct answer *answer = answer_of(parser);
	int rc;

	if (answer->status != 200) { /* a page that says why: not read to its end */
		if (answer->sink->refusal)
			strbuf_add(answer->sink->refusal, at,
				   length < ANSWER_REFUSAL_BYTES_MAX ? length
								     : ANSWER_REFUSAL_BYTES_MAX);
		answer->is_over = true;
		return HPE_PAUSED;
	}
	answer->bytes += length;
	if (check_length(answer, answer->bytes))
		return HPE_USER;
	rc = answer->sink->take(answer->sink->context, slice_from(at, length), answer->err);
	return rc ? stop(answer, rc) : 0;
}

static int on_end(llhttp_t *parser)
{
	if (answer_of(parser)->status < 200)
		return 0; /* the answer is still to come */
	answer_of(parser)->is_over = true;
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

void answer_begin(struct answer *answer, const struct answer_sink *sink)
{
	*answer = (struct answer){ .sink = sink };
	llhttp_init(&answer->parser, HTTP_RESPONSE, &settings);
	answer->parser.data = answer;
}

void answer_free(struct answer *answer)
{
	strbuf_free(&answer->name);
	strbuf_free(&answer->value);
	strbuf_free(&answer->location);
}

int answer_add(struct answer *answer, struct slice bytes, struct err *err)
{
	llhttp_errno_t code;

	answer->err = err;
	code = llhttp_execute(&answer->parser, bytes.data, bytes.len);
	if (code == HPE_OK || answer->is_over)
		return 0;
	if (answer->code) /* llhttp does not pass on what on_head returns */
		return answer->code;
	return err_set(err, ERR_UNAVAILABLE, "the answer is not HTTP/1.1: %s",
		       llhttp_get_error_reason(&answer->parser));
}

bool answer_end(struct answer *answer)
{
	if (!answer->is_over && answer->status >= 200)
		(void)llhttp_finish(&answer->parser);
	return answer->is_over;
}

bool answer_is_redirection(const struct answer *answer)
{
	return answer->location.len &&
	       (answer->status == 301 || answer->status == 302 || answer->status == 303 ||
		answer->status == 307 || answer->status == 308);
}
