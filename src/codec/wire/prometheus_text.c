/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/prometheus_text.h"

#include <stdio.h>
#include <stdlib.h>

#define NUMBER_BYTES_MAX 64

static bool is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || byte == ':';
}

static void skip_blanks(struct slice *line)
{
	while (line->len && (line->data[0] == ' ' || line->data[0] == '\t'))
		*line = slice_tail(*line, 1);
}

static struct slice take_name(struct slice *line)
{
	struct slice name = { line->data, 0 };

	while (name.len < line->len && is_name_byte(line->data[name.len]))
		name.len++;
	*line = slice_tail(*line, name.len);
	return name;
}

static bool take_byte(struct slice *line, char byte)
{
	if (!line->len || line->data[0] != byte)
		return false;
	*line = slice_tail(*line, 1);
	return true;
}

/* A value between quotes, as it is written. */
static bool take_value(struct slice *line, struct slice *ret)
{
	size_t at = 0;

	if (!take_byte(line, '"'))
		return false;
	while (at < line->len && line->data[at] != '"')
		at += line->data[at] == '\\' ? 2 : 1;
	if (at >= line->len)
		return false;
	*ret = (struct slice){ line->data, at };
	*line = slice_tail(*line, at + 1);
	return true;
}

/* One label of a list and the comma after it. */
static bool take_label(struct slice *list, struct slice *name, struct slice *value)
{
	skip_blanks(list);
	*name = take_name(list);
	skip_blanks(list);
	if (!name->len || !take_byte(list, '='))
		return false;
	skip_blanks(list);
	if (!take_value(list, value))
		return false;
	skip_blanks(list);
	take_byte(list, ',');
	skip_blanks(list);
	return true;
}

/* From behind the opening brace to behind the closing one. */
static bool take_labels(struct slice *line, struct slice *ret)
{
	struct slice start = *line, name, value;

	skip_blanks(line);
	while (line->len && line->data[0] != '}')
		if (!take_label(line, &name, &value))
			return false;
	*ret = (struct slice){ start.data, start.len - line->len };
	return take_byte(line, '}');
}

static bool parse_number(struct slice line, double *ret)
{
	char text[NUMBER_BYTES_MAX], *end;
	size_t len = 0;

	skip_blanks(&line);
	while (len < line.len && line.data[len] != ' ' && line.data[len] != '\t' &&
	       line.data[len] != '\r')
		len++;
	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, line.data, len);
	text[len] = '\0';
	*ret = strtod(text, &end);
	return end == text + len;
}

static bool parse_line(struct slice line, struct prometheus_sample *ret)
{
	*ret = (struct prometheus_sample){ 0 };
	skip_blanks(&line);
	ret->name = take_name(&line);
	if (!ret->name.len)
		return false;
	skip_blanks(&line);
	if (take_byte(&line, '{') && !take_labels(&line, &ret->labels))
		return false;
	return parse_number(line, &ret->value);
}

bool prometheus_next(struct slice *text, struct prometheus_sample *ret)
{
	while (text->len)
		if (parse_line(slice_cut(*text, '\n', text), ret))
			return true;
	return false;
}

static void unescape(struct slice value, struct strbuf *ret)
{
	strbuf_clear(ret);
	for (size_t i = 0; i < value.len; i++) {
		char byte = value.data[i];

		if (byte == '\\' && i + 1 < value.len) {
			i++;
			byte = value.data[i] == 'n' ? '\n' : value.data[i];
		}
		strbuf_add_byte(ret, byte);
	}
}

bool prometheus_label(const struct prometheus_sample *sample, const char *name, struct strbuf *ret)
{
	struct slice list = sample->labels, at, value;

	while (list.len && take_label(&list, &at, &value)) {
		if (!slice_is(at, name))
			continue;
		unescape(value, ret);
		return true;
	}
	return false;
}
