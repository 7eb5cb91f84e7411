/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/shell_word.h"

#include <string.h>

/* Also nothing that a command could take for an option. */
static bool is_plain(struct slice text)
{
	static const char plain[] = "+-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				    "abcdefghijklmnopqrstuvwxyz";

	for (size_t i = 0; i < text.len; i++)
		if (!text.data[i] || !strchr(plain, text.data[i]))
			return false;
	return text.len && text.data[0] != '-';
}

void shell_word_add(struct slice text, struct strbuf *out)
{
	if (is_plain(text)) {
		strbuf_add_slice(out, text);
		return;
	}
	strbuf_add_byte(out, '\'');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\'')
			strbuf_add_text(out, "'\\'");
		strbuf_add_byte(out, text.data[i]);
	}
	strbuf_add_byte(out, '\'');
}
