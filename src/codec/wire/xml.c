/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/xml.h"

#include <string.h>

static int bad(const struct xml_reader *reader, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "XML at byte %zu: %s", reader->at, why);
}

void xml_begin(struct xml_reader *reader, struct slice document)
{
	*reader = (struct xml_reader){ .document = document };
	if (slice_starts_with(document, SLICE_LITERAL("\xef\xbb\xbf")))
		reader->at = 3;
}

static struct slice rest_of(const struct xml_reader *reader)
{
	return slice_tail(reader->document, reader->at);
}

/* Passes over what begins here, up to and with `end`. */
static int skip_to(struct xml_reader *reader, const char *end, struct err *err)
{
	struct slice rest = rest_of(reader);
	const char *found = memmem(rest.data, rest.len, end, strlen(end));

	if (!found)
		return bad(reader, "it ends within a comment or an instruction", err);
	reader->at += (size_t)(found - rest.data) + strlen(end);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool ends_name(char c)
{
	return is_blank(c) || c == '/' || c == '>' || c == '<' || c == '=' || c == '"' ||
	       c == '\'' || c == '&';
}

/* The name at the reader, which goes behind it. */
static int take_name(struct xml_reader *reader, struct slice *ret, struct err *err)
{
	struct slice rest = rest_of(reader);
	size_t len = 0;

	while (len < rest.len && !ends_name(rest.data[len]))
		len++;
	if (!len)
		return bad(reader, "a tag without a name", err);
	*ret = slice_from(rest.data, len);
	reader->at += len;
	return 0;
}

static struct slice local_name(struct slice name)
{
	size_t colon = slice_find_byte(name, ':');

	return colon == SIZE_MAX ? name : slice_tail(name, colon + 1);
}

/* Behind the tag's '>'; quoted values may hold one. *ret_empty: it was "/>". */
static int skip_attributes(struct xml_reader *reader, bool *ret_empty, struct err *err)
{
	char quote = 0, last = 0;

	for (; reader->at < reader->document.len; reader->at++) {
		char c = reader->document.data[reader->at];

		if (quote) {
			if (c == quote)
				quote = 0;
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (c == '<') {
			return bad(reader, "a tag within a tag", err);
		} else if (c == '>') {
			*ret_empty = last == '/';
			reader->at++;
			return 0;
		}
		last = quote ? 0 : c;
	}
	return bad(reader, "it ends within a tag", err);
}

static int open_tag(struct xml_reader *reader, struct xml_piece *ret, struct err *err)
{
	struct slice name;
	int rc;

	reader->at++;
	if (!reader->depth && reader->is_begun)
		return bad(reader, "a second root element", err);
	if (reader->depth == XML_DEPTH_MAX)
		return bad(reader, "elements are nested too deeply", err);
	rc = take_name(reader, &name, err);
	if (!rc)
		rc = skip_attributes(reader, &reader->closes_next, err);
	if (rc)
		return rc;
	reader->is_begun = true;
	reader->open[reader->depth++] = name;
	*ret = (struct xml_piece){ XML_OPEN, local_name(name) };
	return 0;
}

static int close_tag(struct xml_reader *reader, struct xml_piece *ret, struct err *err)
{
	struct slice name;
	bool is_empty;
	int rc;

	reader->at += 2;
	rc = take_name(reader, &name, err);
	if (!rc)
		rc = skip_attributes(reader, &is_empty, err);
	if (rc)
		return rc;
	if (!reader->depth || !slice_equal(reader->open[reader->depth - 1], name))
		return bad(reader, "the end of an element that is not open", err);
	reader->depth--;
	*ret = (struct xml_piece){ XML_CLOSE, local_name(name) };
	return 0;
}

/* Text up to the next tag. *ret_is_piece: it is within an element. */
static int take_text(struct xml_reader *reader, struct xml_piece *ret, bool *ret_is_piece,
		     struct err *err)
{
	struct slice rest = rest_of(reader);
	size_t len = slice_find_byte(rest, '<');
	struct slice text = { rest.data, len == SIZE_MAX ? rest.len : len };

	*ret_is_piece = reader->depth > 0;
	if (!reader->depth && slice_trim(text).len)
		return bad(reader, "text outside of the root element", err);
	reader->at += text.len;
	*ret = (struct xml_piece){ XML_TEXT, text };
	return 0;
}

static int end_document(const struct xml_reader *reader, struct xml_piece *ret, struct err *err)
{
	if (reader->depth || !reader->is_begun)
		return bad(reader, "it ends too early", err);
	*ret = (struct xml_piece){ XML_END, { 0 } };
	return 0;
}

int xml_next(struct xml_reader *reader, struct xml_piece *ret, struct err *err)
{
	if (reader->closes_next) {
		reader->closes_next = false;
		reader->depth--;
		*ret = (struct xml_piece){ XML_CLOSE, local_name(reader->open[reader->depth]) };
		return 0;
	}
	for (;;) {
		struct slice rest = rest_of(reader);
		bool is_piece;
		int rc = 0;

		if (!rest.len)
			return end_document(reader, ret, err);
		if (slice_starts_with(rest, SLICE_LITERAL("<?")))
			rc = skip_to(reader, "?>", err);
		else if (slice_starts_with(rest, SLICE_LITERAL("<!--")))
			rc = skip_to(reader, "-->", err);
		else if (slice_starts_with(rest, SLICE_LITERAL("<!")))
			return bad(reader, "document types and CDATA are not expected", err);
		else if (slice_starts_with(rest, SLICE_LITERAL("</")))
			return close_tag(reader, ret, err);
		else if (rest.data[0] == '<')
			return open_tag(reader, ret, err);
		else {
			rc = take_text(reader, ret, &is_piece, err);
			if (!rc && is_piece)
				return 0;
		}
		if (rc)
			return rc;
	}
}

/* UTF-8 of a character that XML allows; false for others. */
static bool add_character(uint32_t code, struct strbuf *out)
{
	if (!code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return false;
	if (code < 0x80) {
		strbuf_add_byte(out, (char)code);
		return true;
	}
	if (code < 0x800) {
		strbuf_add_byte(out, (char)(0xc0 | code >> 6));
	} else if (code < 0x10000) {
		strbuf_add_byte(out, (char)(0xe0 | code >> 12));
		strbuf_add_byte(out, (char)(0x80 | (code >> 6 & 0x3f)));
	} else {
		strbuf_add_byte(out, (char)(0xf0 | code >> 18));
		strbuf_add_byte(out, (char)(0x80 | (code >> 12 & 0x3f)));
		strbuf_add_byte(out, (char)(0x80 | (code >> 6 & 0x3f)));
	}
	strbuf_add_byte(out, (char)(0x80 | (code & 0x3f)));
	return true;
}

/* "#39" or "#x27". */
static bool add_numbered(struct slice digits, struct strbuf *out)
{
	bool is_hex = digits.len > 1 && digits.data[1] == 'x';
	uint32_t code = 0;

	digits = slice_tail(digits, is_hex ? 2 : 1);
	if (!digits.len || digits.len > 8)
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		int digit = slice_hex_digit(digits.data[i]);

		if (digit < 0 || (!is_hex && digit > 9))
			return false;
		code = code * (is_hex ? 16 : 10) + (uint32_t)digit;
	}
	return add_character(code, out);
}

static bool add_entity(struct slice name, struct strbuf *out)
{
	static const struct {
		const char *name;
		char is;
	} entities[] = {
		{ "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' }
	};

	for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
		if (slice_is(name, entities[i].name)) {
			strbuf_add_byte(out, entities[i].is);
			return true;
		}
	return name.len && name.data[0] == '#' && add_numbered(name, out);
}

int xml_add_text(struct slice text, struct strbuf *out, struct err *err)
{
	while (text.len) {
		size_t at = slice_find_byte(text, '&');
		struct slice name;
		size_t end;

		strbuf_add(out, text.data, at == SIZE_MAX ? text.len : at);
		if (at == SIZE_MAX)
			return 0;
		text = slice_tail(text, at + 1);
		end = slice_find_byte(text, ';');
		name = slice_from(text.data, end == SIZE_MAX ? 0 : end);
		if (!add_entity(name, out))
			return err_set(err, ERR_INVALID, "XML: \"&%.*s\" is not a character",
				       (int)(text.len < 12 ? text.len : 12), text.data);
		text = slice_tail(text, end + 1);
	}
	return 0;
}

void xml_escape(struct slice text, struct strbuf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		switch (text.data[i]) {
		case '&':
			strbuf_add_text(out, "&amp;");
			break;
		case '<':
			strbuf_add_text(out, "&lt;");
			break;
		case '>':
			strbuf_add_text(out, "&gt;");
			break;
		default:
			strbuf_add_byte(out, text.data[i]);
		}
	}
}
