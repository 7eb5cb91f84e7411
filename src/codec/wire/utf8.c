/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/utf8.h"

#include "base/mem.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

size_t utf8_add_repaired(struct strbuf *out, struct slice text)
{
	size_t len = slice_character(text);

	if (!len || !text.data[0]) {
		strbuf_add_text(out, REPLACEMENT);
		return 1;
	}
	strbuf_add(out, text.data, len);
	return len;
}

char *utf8_copy_repaired(struct slice text)
{
	struct strbuf out = { 0 };
	char *copy;

	while (text.len)
		text = slice_tail(text, utf8_add_repaired(&out, text));
	copy = mem_strndup(out.len ? out.data : "", out.len);
	strbuf_free(&out);
	return copy;
}

void utf8_add_character(struct strbuf *out, uint32_t character)
{
	char bytes[4];

	if (!character || character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
		character = 0xfffd;
	if (character < 0x80) {
		strbuf_add_byte(out, (char)character);
		return;
	}
	bytes[3] = (char)(0x80 | (character & 63));
	bytes[2] = (char)(0x80 | (character >> 6 & 63));
	bytes[1] = (char)(0x80 | (character >> 12 & 63));
	if (character < 0x800) {
		bytes[2] = (char)(0xc0 | character >> 6);
		strbuf_add(out, bytes + 2, 2);
	} else if (character < 0x10000) {
		bytes[1] = (char)(0xe0 | character >> 12);
		strbuf_add(out, bytes + 1, 3);
	} else {
		bytes[0] = (char)(0xf0 | character >> 18);
		strbuf_add(out, bytes, 4);
	}
}

static bool is_high(uint16_t unit)
{
	return unit >> 10 == 0xd800 >> 10;
}

static bool is_low(uint16_t unit)
{
	return unit >> 10 == 0xdc00 >> 10;
}

void utf8_add_units(struct strbuf *out, const uint16_t *units, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t character = units[i];

		if (is_high(units[i]) && i + 1 < count && is_low(units[i + 1])) {
			character = 0x10000 + ((units[i] & 0x3ffu) << 10) + (units[i + 1] & 0x3ffu);
			i++;
		}
		utf8_add_character(out, character);
	}
}

struct slice utf8_cut(struct slice text, size_t bytes_max)
{
	size_t len = bytes_max;

	if (text.len <= bytes_max)
		return text;
	while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
		len--;
	return slice_from(text.data, len);
}
