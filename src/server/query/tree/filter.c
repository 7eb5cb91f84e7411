/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/filter.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>

#include "base/regex.h"

#define REGEX_ERROR_BYTES 128

static const struct {
	const char *name, *short_name; /* the short ones are Perfetto's */
} actions[FILTER_ACTIONS] = {
	[FILTER_SHOW_STACK] = { "show-stack", "SS" }, [FILTER_HIDE_STACK] = { "hide-stack", "HS" },
	[FILTER_SHOW_FROM] = { "show-from", "SFF" },  [FILTER_SHOW_FRAME] = { "show-frame", "SF" },
	[FILTER_HIDE_FRAME] = { "hide-frame", "HF" },
};

static const char *const fields[FILTER_FIELDS] = {
	[FILTER_FUNCTION] = "function", [FILTER_SYSTEM_NAME] = "system_name",
	[FILTER_BINARY] = "binary",	[FILTER_FILE] = "file",
	[FILTER_KIND] = "kind",		[FILTER_ADDRESS] = "address",
	[FILTER_LINE] = "line",
};

/* Longest first: the first that fits is it. */
static const struct {
	const char *text;
	enum filter_op op;
	bool negated;
} ops[] = {
	{ "!*=", FILTER_CONTAINS, true }, { "!^=", FILTER_STARTS_WITH, true },
	{ "=~", FILTER_REGEX, false },	  { "!~", FILTER_REGEX, true },
	{ "*=", FILTER_CONTAINS, false }, { "^=", FILTER_STARTS_WITH, false },
	{ "!=", FILTER_IS, true },	  { "=", FILTER_IS, false },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

struct parser {
	struct filter_list *filters;
	struct slice text;
	size_t at;
	struct err *err;
};

static int fail(const struct parser *p, const char *expected)
{
	return err_set(p->err, ERR_INVALID, "filter \"%.*s\": column %zu: expected %s",
		       SLICE_FMT(p->text), p->at + 1, expected);
}

static struct slice rest_of(const struct parser *p)
{
	return slice_from(p->text.data + p->at, p->text.len - p->at);
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->text.len && isspace((unsigned char)p->text.data[p->at]))
		p->at++;
}

static bool take(struct parser *p, char byte)
{
	skip_blanks(p);
	if (p->at == p->text.len || p->text.data[p->at] != byte)
		return false;
	p->at++;
	return true;
}

/* Letters, '-' and '_' from here on. */
static struct slice peek_word(const struct parser *p)
{
	struct slice rest = rest_of(p);
	size_t len = 0;

	while (len < rest.len && (isalpha((unsigned char)rest.data[len]) || rest.data[len] == '-' ||
				  rest.data[len] == '_'))
		len++;
	return slice_from(rest.data, len);
}

static int take_action(struct parser *p, enum filter_action *ret)
{
	struct slice word;

	skip_blanks(p);
	word = peek_word(p);
	for (int i = 0; i < FILTER_ACTIONS; i++) {
		if (!slice_is(word, actions[i].name) && !slice_is(word, actions[i].short_name))
			continue;
		p->at += word.len;
		take(p, ':');
		*ret = (enum filter_action)i;
		return 0;
	}
	return fail(p, "show-stack, hide-stack, show-from, show-frame or hide-frame");
}

/* FIELD OP, when both stand here; else the condition stays as it is. */
static void take_field(struct parser *p, struct filter_condition *condition)
{
	struct parser ahead = *p;
	struct slice word;

	skip_blanks(&ahead);
	word = peek_word(&ahead);
	for (int i = 0; i < FILTER_FIELDS; i++) {
		if (!slice_is(word, fields[i]))
			continue;
		ahead.at += word.len;
		skip_blanks(&ahead);
		for (size_t at = 0; at < OPS; at++) {
			if (!slice_starts_with(rest_of(&ahead), slice_of(ops[at].text)))
				continue;
			condition->field = (enum filter_field)i;
			condition->op = ops[at].op;
			condition->negated = ops[at].negated;
			p->at = ahead.at + strlen(ops[at].text);
			return;
		}
	}
}

static int take_quoted(struct parser *p, struct strbuf *value)
{
	for (p->at++; p->at < p->text.len; p->at++) {
		char c = p->text.data[p->at];

		if (c == '"') {
			p->at++;
			return 0;
		}
		if (c == '\\' && p->at + 1 < p->text.len && strchr("\"\\", p->text.data[p->at + 1]))
			c = p->text.data[++p->at];
		strbuf_add_byte(value, c);
	}
	return fail(p, "a closing quote");
}

static int take_value(struct parser *p, struct strbuf *value)
{
	size_t from;

	skip_blanks(p);
	if (p->at < p->text.len && p->text.data[p->at] == '"')
		return take_quoted(p, value);
	from = p->at;
	while (p->at < p->text.len && p->text.data[p->at] != ',' && p->text.data[p->at] != ';')
		p->at++;
	while (p->at > from && isspace((unsigned char)p->text.data[p->at - 1]))
		p->at--;
	if (p->at == from)
		return fail(p, "a value");
	strbuf_add(value, p->text.data + from, p->at - from);
	return 0;
}

static int take_condition(struct parser *p, struct filter *filter)
{
	struct filter_condition condition = { .field = FILTER_FUNCTION, .op = FILTER_CONTAINS };
	struct strbuf value = { 0 };
	int rc;

	take_field(p, &condition);
	rc = take_value(p, &value);
	condition.text = strbuf_slice(&value);
	if (!rc)
		rc = filter_add_condition(p->filters, filter, &condition, p->err);
	strbuf_free(&value);
	return rc;
}

static int take_filter(struct parser *p)
{
	enum filter_action action = FILTER_SHOW_STACK;
	struct filter *filter;
	int rc = take_action(p, &action);

	assert(p->filters->count <= FILTERS_MAX);
	if (rc)
		return rc;
	filter = filter_list_add(p->filters, action);
	if (!filter)
		return err_set(p->err, ERR_LIMIT, "filter: more than %d filters", FILTERS_MAX);
	do {
		rc = take_condition(p, filter);
	} while (!rc && take(p, ','));
	return rc;
}

int filter_list_parse(struct filter_list *filters, struct slice text, struct err *err)
{
	struct parser p = { .filters = filters, .text = text, .err = err };
	int rc = 0;

	assert(filters->count <= FILTERS_MAX);
	if (text.len > FILTER_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "filter: longer than %d bytes", FILTER_BYTES_MAX);
	while (!rc) {
		skip_blanks(&p);
		if (p.at == text.len)
			break;
		rc = take_filter(&p);
		if (!rc && !take(&p, ';') && p.at < text.len)
			rc = fail(&p, "',' and a condition, or ';' and a filter");
	}
	return rc;
}

struct filter *filter_list_add(struct filter_list *filters, enum filter_action action)
{
	struct filter *filter = &filters->list[filters->count];

	assert(filters->count <= FILTERS_MAX);
	if (filters->count == FILTERS_MAX)
		return NULL;
	filters->count++;
	*filter = (struct filter){ .action = action };
	return filter;
}

static int parse_number(struct filter_condition *condition, struct err *err)
{
	struct slice text = condition->text;
	bool hex = slice_starts_with(text, SLICE_LITERAL("0x"));
	bool valid = text.len > 0;

	if (condition->op != FILTER_IS)
		return err_set(err, ERR_INVALID, "filter: %s takes = and != only",
			       fields[condition->field]);
	if (!hex)
		valid = slice_parse_u64(text, &condition->number);
	for (size_t i = 2; hex && valid && i < text.len; i++) {
		int c = tolower((unsigned char)text.data[i]);

		valid = isxdigit(c) && !(condition->number >> 60) && text.len > 2;
		condition->number =
			condition->number * 16 + (uint64_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
	}
	if (!valid || (hex && text.len == 2))
		return err_set(err, ERR_INVALID, "filter: %s \"%.*s\" is not a number",
			       fields[condition->field], SLICE_FMT(text));
	return 0;
}

int filter_add_condition(struct filter_list *filters, struct filter *filter,
			 const struct filter_condition *condition, struct err *err)
{
	struct filter_condition *made = &filter->conditions[filter->conditions_count];
	char error[REGEX_ERROR_BYTES];
	int rc = 0;

	assert(filter->conditions_count <= FILTER_CONDITIONS_MAX);
	assert(!condition->regex);
	if (filter->conditions_count == FILTER_CONDITIONS_MAX)
		return err_set(err, ERR_LIMIT, "filter: more than %d conditions",
			       FILTER_CONDITIONS_MAX);
	*made = *condition;
	made->regex = NULL;
	made->text = arena_copy(&filters->arena, condition->text);
	if (made->field == FILTER_ADDRESS || made->field == FILTER_LINE)
		rc = parse_number(made, err);
	if (!rc && made->op == FILTER_REGEX) {
		made->regex =
			regex_new(made->text.data, made->text.len, false, error, sizeof(error));
		if (!made->regex)
			rc = err_set(err, ERR_INVALID, "filter: regular expression \"%.*s\": %s",
				     SLICE_FMT(made->text), error);
	}
	if (!rc)
		filter->conditions_count++;
	return rc;
}

void filter_list_free(struct filter_list *filters)
{
	for (size_t i = 0; i < filters->count; i++)
		for (size_t at = 0; at < filters->list[i].conditions_count; at++)
			regex_free(filters->list[i].conditions[at].regex);
	arena_free(&filters->arena);
	filters->count = 0;
}

static void format_condition(struct strbuf *out, const struct filter_condition *condition)
{
	strbuf_add_text(out, fields[condition->field]);
	for (size_t i = 0; i < OPS; i++)
		if (ops[i].op == condition->op && ops[i].negated == condition->negated)
			strbuf_add_text(out, ops[i].text);
	strbuf_add_byte(out, '"');
	for (size_t i = 0; i < condition->text.len; i++) {
		char c = condition->text.data[i];

		if (c == '"' || c == '\\')
			strbuf_add_byte(out, '\\');
		strbuf_add_byte(out, c);
	}
	strbuf_add_byte(out, '"');
}

void filter_list_format(struct strbuf *out, const struct filter_list *filters)
{
	assert(filters->count <= FILTERS_MAX);
	for (size_t i = 0; i < filters->count; i++) {
		const struct filter *filter = &filters->list[i];

		strbuf_add_text(out, i ? "; " : "");
		strbuf_add_text(out, actions[filter->action].name);
		for (size_t at = 0; at < filter->conditions_count; at++) {
			strbuf_add_byte(out, at ? ',' : ' ');
			format_condition(out, &filter->conditions[at]);
		}
	}
}
