/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <stdarg.h>

struct range {
	uint32_t from, to;
};

static bool is_command(uint32_t code)
{
	static const struct range ranges[] = {
		{ 0x00, 0x1f },	    { 0x7f, 0x9f },	/* controls */
		{ 0x061c, 0x061c }, { 0x200e, 0x200f }, /* marks of direction */
		{ 0x2028, 0x202e },			/* separators, embeddings, overrides */
		{ 0x2066, 0x2069 },			/* isolates */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].from && code <= ranges[i].to)
			return true;
	return false;
}

/* The code point of a well-formed character. */
static uint32_t code_of(struct slice character)
{
	const unsigned char *bytes = (const unsigned char *)character.data;
	uint32_t code = character.len == 1 ? bytes[0] : bytes[0] & (0xffu >> (character.len + 1));

	for (size_t i = 1; i < character.len; i++)
		code = code << 6 | (bytes[i] & 0x3f);
	return code;
}

size_t printable_command(struct slice text, uint32_t *ret_code)
{
	size_t len = slice_character(text);
	uint32_t code = len ? code_of(slice_from(text.data, len)) : (unsigned char)text.data[0];

	if (len && !is_command(code))
		return 0;
	*ret_code = code;
	return len ? len : 1;
}

static bool is_plain(char c)
{
	return c >= ' ' && c < 0x7f;
}

static void add(struct strbuf *out, struct slice text, bool lines)
{
	size_t at = 0;

	while (at < text.len) {
		size_t run = at, len;
		uint32_t code;

		while (run < text.len && is_plain(text.data[run]))
			run++;
		strbuf_add(out, text.data + at, run - at);
		at = run;
		if (at == text.len)
			break;
		len = printable_command(slice_tail(text, at), &code);
		if (len && !(lines && (code == '\n' || code == '\t'))) {
			strbuf_addf(out, "\\u%04x", code);
		} else {
			len = slice_character(slice_tail(text, at));
			strbuf_add(out, text.data + at, len);
		}
		at += len;
	}
}

void printable_add(struct strbuf *out, struct slice text)
{
	add(out, text, false);
}

void printable_add_lines(struct strbuf *out, struct slice text)
{
	add(out, text, true);
}

void printable_write(FILE *to, struct slice text)
{
	struct strbuf clean = { 0 };

	printable_add_lines(&clean, text);
	fwrite(strbuf_text(&clean), 1, clean.len, to);
	strbuf_free(&clean);
}

void printable_print(FILE *to, const char *format, ...)
{
	struct strbuf text = { 0 };
	va_list args;

	va_start(args, format);
	strbuf_addv(&text, format, args);
	va_end(args);
	printable_write(to, strbuf_slice(&text));
	strbuf_free(&text);
}
