/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/text.h"

/* Cuts before a sequence that would be split. */
static struct slice cut(struct slice value)
{
	if (value.len <= TEXT_BYTES_MAX)
		return value;
	value.len = TEXT_BYTES_MAX;
	while (value.len && ((unsigned char)value.data[value.len] & 0xc0) == 0x80)
		value.len--;
	return value;
}

struct slice text_clean(struct slice text, char clean[TEXT_BYTES_MAX])
{
	text = cut(text);
	if (slice_is_utf8(text))
		return text;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];

		clean[i] = byte && byte < 0x80 ? (char)byte : '?';
	}
	return slice_from(clean, text.len);
}

uint32_t text_intern(struct tables *tables, struct slice text)
{
	char clean[TEXT_BYTES_MAX];

	return tables_string(tables, text_clean(text, clean));
}
