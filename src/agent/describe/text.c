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

uint32_t text_intern(struct tables *tables, struct slice value)
{
	char clean[TEXT_BYTES_MAX];

	value = cut(value);
	if (slice_is_utf8(value))
		return tables_string(tables, value);
	for (size_t i = 0; i < value.len; i++) {
		unsigned char byte = (unsigned char)value.data[i];

		clean[i] = byte && byte < 0x80 ? (char)byte : '?';
	}
	return tables_string(tables, slice_from(clean, value.len));
}
