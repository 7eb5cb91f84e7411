/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/lines.h"

#include <stdarg.h>
#include <stdio.h>

/* RFC 9110 section 5.6.2, without upper case: HTTP/2 has none. */
static bool is_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    (!c || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return name.len;
}

static bool is_value(struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool lines_add(struct strbuf *lines, struct slice name, struct slice value)
{
	if (!is_name(name) || !is_value(value))
		return false;
	strbuf_add_slice(lines, name);
	strbuf_add(lines, ": ", 2);
	strbuf_add_slice(lines, value);
	strbuf_add(lines, "\r\n", 2);
	return true;
}

bool lines_addf(struct strbuf *lines, const char *name, const char *format, ...)
{
	char value[256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	return len >= 0 && (size_t)len < sizeof(value) &&
	       lines_add(lines, slice_of(name), slice_of(value));
}

bool lines_next(struct slice *lines, struct net_header *ret)
{
	while (lines->len) {
		struct slice line = slice_cut(*lines, '\n', lines);
		struct slice value;
		struct slice name = slice_cut(line, ':', &value);

		value = slice_trim(value);
		if (name.len < line.len && is_name(name) && is_value(value)) {
			*ret = (struct net_header){ .name = name, .value = value };
			return true;
		}
	}
	return false;
}

bool lines_have(struct slice lines, struct slice name)
{
	struct net_header header;

	while (lines_next(&lines, &header))
		if (slice_equal(header.name, name))
			return true;
	return false;
}

struct slice lines_find(struct slice lines, const char *name)
{
	struct net_header header;

	while (lines_next(&lines, &header))
		if (slice_is(header.name, name))
			return header.value;
	return (struct slice){ 0 };
}
