/* SPDX-License-Identifier: Apache-2.0 */
#include "model/selector.h"

#include <assert.h>
#include <ctype.h>

#include "base/mem.h"
#include "base/regex.h"
#include "model/service.h"

struct parser {
	struct slice text;
	size_t at;
	char *unescaped; /* next free byte of selector->bytes */
	struct err *err;
};

static int fail(struct parser *p, const char *expected)
{
	return err_set(p->err, ERR_INVALID, "selector \"%.*s\": column %zu: expected %s",
		       SLICE_FMT(p->text), p->at + 1, expected);
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->text.len && isspace((unsigned char)p->text.data[p->at]))
		p->at++;
}

static bool take(struct parser *p, char byte)
{
	skip_blanks(p);
	if (p->at < p->text.len && p->text.data[p->at] == byte) {
		p->at++;
		return true;
	}
	return false;
}

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || strchr("_.-/:", c) || (unsigned char)c >= 0x80;
}

static bool read_digits(const struct parser *p, size_t from, size_t count, unsigned base,
			uint32_t *ret)
{
	*ret = 0;
	if (p->text.len - from < count)
		return false;
	for (size_t i = 0; i < count; i++) {
		int digit = slice_hex_digit(p->text.data[from + i]);

		if (digit < 0 || (unsigned)digit >= base)
			return false;
		*ret = *ret * base + (unsigned)digit;
	}
	return true;
}

static char *put_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	if (code >= 0x80)
		*out++ = (char)(0x80 | (code & 0x3f));
	return out;
}

/*
 * An escape that tells a character by its number, as PromQL has them from Go: \\101, \\x41,
 * \\u0041,
 * \\U00000041. The first two tell bytes. False when it is none.
 */
static bool take_number(struct parser *p)
{
	char kind = p->text.data[p->at];
	size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 3;
	bool is_octal = kind >= '0' && kind <= '7';
	uint32_t code;

	if ((!is_octal && !memchr("xuU", kind, 3)) ||
	    !read_digits(p, p->at + !is_octal, digits, is_octal ? 8 : 16, &code))
		return false;
	if (is_octal || kind == 'x') {
		if (code > 0xff)
			return false;
		*p->unescaped++ = (char)code;
	} else {
		if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
		p->unescaped = put_utf8(p->unescaped, code);
	}
	p->at += digits - is_octal;
	return true;
}

/* Of what stands behind a backslash. */
static void take_escape(struct parser *p)
{
	static const char letters[] = "ntrafv\\\"'", meant[] = "\n\t\r\a\f\v\\\"'";
	char c = p->text.data[p->at];
	const char *letter = c ? strchr(letters, c) : NULL;

	if (letter) {
		*p->unescaped++ = meant[letter - letters];
	} else if (!take_number(p)) {
		*p->unescaped++ = '\\'; /* keep \d and its like for regexes */
		*p->unescaped++ = c;
	}
}

static int take_quoted(struct parser *p, struct slice *ret)
{
	char *from = p->unescaped;
	char quote = p->text.data[p->at++];

	for (; p->at < p->text.len; p->at++) {
		char c = p->text.data[p->at];

		if (c == quote) {
			p->at++;
			*ret = slice_from(from, (size_t)(p->unescaped - from));
			return 0;
		}
		if (c == '\\' && quote != '`') {
			if (++p->at == p->text.len)
				break;
			take_escape(p);
			continue;
		}
		*p->unescaped++ = c;
	}
	return fail(p, "a closing quote");
}

static int take_name(struct parser *p, struct slice *ret)
{
	size_t from;

	skip_blanks(p);
	from = p->at;
	if (p->at < p->text.len && p->text.data[p->at] == '"') {
		int rc = take_quoted(p, ret);

		return rc || ret->len ? rc : fail(p, "a label name");
	}
	while (p->at < p->text.len && is_name_byte(p->text.data[p->at]))
		p->at++;
	if (p->at == from)
		return fail(p, "a label name");
	memcpy(p->unescaped, p->text.data + from, p->at - from);
	*ret = slice_from(p->unescaped, p->at - from);
	p->unescaped += p->at - from;
	return 0;
}

static int take_op(struct parser *p, enum matcher_op *ret)
{
	if (take(p, '=')) {
		*ret = p->at < p->text.len && p->text.data[p->at] == '~' ? (p->at++, MATCH_REGEX)
									 : MATCH_EQUAL;
		return 0;
	}
	if (take(p, '!')) {
		if (p->at < p->text.len && p->text.data[p->at] == '=') {
			p->at++;
			*ret = MATCH_NOT_EQUAL;
			return 0;
		}
		if (p->at < p->text.len && p->text.data[p->at] == '~') {
			p->at++;
			*ret = MATCH_NOT_REGEX;
			return 0;
		}
	}
	return fail(p, "one of = != =~ !~");
}

static int take_matcher(struct parser *p, struct matcher *ret)
{
	char cause[256];
	int rc = take_name(p, &ret->name);

	if (!rc)
		rc = take_op(p, &ret->op);
	if (rc)
		return rc;
	skip_blanks(p);
	if (p->at == p->text.len || !memchr("\"'`", p->text.data[p->at], 3))
		return fail(p, "a quoted value");
	rc = take_quoted(p, &ret->value);
	if (rc || ret->op == MATCH_EQUAL || ret->op == MATCH_NOT_EQUAL)
		return rc;
	ret->regex = regex_new(ret->value.data, ret->value.len, false, cause, sizeof(cause));
	if (!ret->regex)
		return err_set(p->err, ERR_INVALID, "selector: regular expression \"%.*s\": %s",
			       SLICE_FMT(ret->value), cause);
	return 0;
}

static int take_matchers(struct parser *p, struct selector *into)
{
	assert(into->matchers && into->matchers_count <= SELECTOR_MATCHERS_MAX);
	while (!take(p, '}')) {
		int rc;

		if (into->matchers_count == SELECTOR_MATCHERS_MAX)
			return err_set(p->err, ERR_LIMIT, "selector: more than %d matchers",
				       SELECTOR_MATCHERS_MAX);
		rc = take_matcher(p, &into->matchers[into->matchers_count++]);
		if (rc)
			return rc;
		if (!take(p, ',')) {
			if (take(p, '}'))
				break;
			return fail(p, "',' or '}'");
		}
	}
	skip_blanks(p);
	return p->at == p->text.len ? 0 : fail(p, "the end");
}

static int parse(struct parser *p, struct selector *into)
{
	size_t from;

	skip_blanks(p);
	from = p->at;
	while (p->at < p->text.len && p->text.data[p->at] != '{' &&
	       !isspace((unsigned char)p->text.data[p->at]))
		p->at++;
	if (p->at > from) {
		struct slice type = slice_from(p->unescaped, p->at - from);
		int rc;

		memcpy(p->unescaped, p->text.data + from, type.len);
		p->unescaped += type.len;
		rc = profile_type_parse(type, &into->type, p->err);
		if (rc)
			return rc;
		into->has_type = true;
	}
	if (take(p, '{'))
		return take_matchers(p, into);
	skip_blanks(p);
	return p->at == p->text.len ? 0 : fail(p, "'{' or the end");
}

int selector_parse(struct slice text, struct selector *ret, struct err *err)
{
	struct selector made = { 0 };
	struct parser p = { .text = text, .err = err };
	int rc;

	if (text.len > SELECTOR_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "selector: longer than %d bytes",
			       SELECTOR_BYTES_MAX);
	if (!slice_is_utf8(text))
		return err_set(err, ERR_INVALID, "selector: not valid UTF-8");
	made.bytes = mem_calloc(text.len + 1, 1);
	made.matchers = mem_new_array(struct matcher, SELECTOR_MATCHERS_MAX);
	p.unescaped = made.bytes;
	rc = parse(&p, &made);
	if (rc) {
		selector_free(&made);
		return rc;
	}
	*ret = made;
	return 0;
}

void selector_free(struct selector *selector)
{
	for (size_t i = 0; i < selector->matchers_count; i++)
		regex_free(selector->matchers[i].regex);
	free(selector->matchers);
	free(selector->bytes);
	*selector = (struct selector){ 0 };
}

static void format_quoted(struct strbuf *out, struct slice text)
{
	strbuf_add_byte(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c == '\\' || c == '"')
			strbuf_add_byte(out, '\\');
		if (c == '\n')
			strbuf_add_text(out, "\\n");
		else
			strbuf_add_byte(out, c);
	}
	strbuf_add_byte(out, '"');
}

static void format_name(struct strbuf *out, struct slice name)
{
	bool plain = name.len > 0;

	for (size_t i = 0; i < name.len; i++)
		plain &= is_name_byte(name.data[i]);
	if (plain)
		strbuf_add_slice(out, name);
	else
		format_quoted(out, name);
}

void selector_format(struct strbuf *out, const struct selector *selector)
{
	static const char *const ops[] = { [MATCH_EQUAL] = "=",
					   [MATCH_NOT_EQUAL] = "!=",
					   [MATCH_REGEX] = "=~",
					   [MATCH_NOT_REGEX] = "!~" };

	assert(selector->matchers || !selector->matchers_count);
	if (selector->has_type)
		profile_type_format(out, &selector->type);
	if (selector->has_type && !selector->matchers_count)
		return;
	for (size_t i = 0; i < selector->matchers_count; i++) {
		const struct matcher *matcher = &selector->matchers[i];

		strbuf_add_byte(out, i ? ',' : '{');
		format_name(out, matcher->name);
		strbuf_add_text(out, ops[matcher->op]);
		format_quoted(out, matcher->value);
	}
	strbuf_add_text(out, selector->matchers_count ? "}" : "{}");
}

bool matcher_matches(const struct matcher *matcher, struct slice value)
{
	switch (matcher->op) {
	case MATCH_EQUAL:
		return slice_equal(matcher->value, value);
	case MATCH_NOT_EQUAL:
		return !slice_equal(matcher->value, value);
	case MATCH_REGEX:
		return regex_matches_whole(matcher->regex, value.data, value.len);
	case MATCH_NOT_REGEX:
		return !regex_matches_whole(matcher->regex, value.data, value.len);
	}
	return false;
}

bool selector_matches(const struct selector *selector, const struct tables_view *view,
		      uint32_t label_set)
{
	assert(label_set < view->label_sets_count);
	for (size_t i = 0; i < selector->matchers_count; i++) {
		const struct matcher *matcher = &selector->matchers[i];

		if (!matcher_matches(matcher, service_label_value(view, label_set, matcher->name)))
			return false;
	}
	return true;
}
