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
			c = p->text.data[p->at];
			if (c == 'n')
				c = '\n';
			else if (c == 't')
				c = '\t';
			else if (c != '\\' && c != '"' && c != '\'')
				*p->unescaped++ = '\\'; /* keep \d and its like for regexes */
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
