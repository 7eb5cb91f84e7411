/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define SEQUENCE_BYTES_MAX 4

/* Bytes of the well-formed character that `text` begins with; 0 when it begins with none. */
static size_t character_bytes(struct slice text)
{
	size_t most = text.len < SEQUENCE_BYTES_MAX ? text.len : SEQUENCE_BYTES_MAX;

	for (size_t len = 1; len <= most; len++)
		if (slice_is_utf8(slice_from(text.data, len)))
			return len;
	return 0;
}

size_t utf8_add_repaired(struct strbuf *out, struct slice text)
{
	size_t len = character_bytes(text);

	if (!len) {
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
