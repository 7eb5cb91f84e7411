/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/utf8.h"

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

struct slice utf8_cut(struct slice text, size_t bytes_max)
{
	size_t len = bytes_max;

	if (text.len <= bytes_max)
		return text;
	while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
		len--;
	return slice_from(text.data, len);
}
