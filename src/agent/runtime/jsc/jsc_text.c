/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: WebKit's Source/WTF/wtf/text/StringImpl.h.
 */
#include "agent/runtime/jsc/jsc_text.h"

#include <string.h>

#include "base/mem.h"
#include "codec/wire/utf8.h"

#define IS_NARROW 4u /* characters of one byte, otherwise of two */

struct string {
	uint32_t references, length;
	uint64_t characters;
	uint32_t flags;
	uint32_t reserved;
};

static void add_narrow(struct strbuf *out, const uint8_t *characters, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		utf8_add_character(out, characters[i]);
}

char *jsc_text_read(const struct memory_reader *memory, uint64_t address)
{
	uint16_t units[JSC_TEXT_MAX];
	struct strbuf out = { 0 };
	struct string string;
	uint32_t count;
	bool is_narrow;
	char *text;

	if (!address)
		return mem_strndup("", 0);
	if (address & 7 || !memory_read(memory, address, &string, sizeof(string)))
		return NULL;
	count = string.length < JSC_TEXT_MAX ? string.length : JSC_TEXT_MAX;
	is_narrow = string.flags & IS_NARROW;
	if (count && !memory_read(memory, string.characters, units, count * (is_narrow ? 1u : 2u)))
		return NULL;
	if (is_narrow)
		add_narrow(&out, (const uint8_t *)units, count);
	else
		utf8_add_units(&out, units, count);
	text = mem_strndup(out.data, out.len);
	strbuf_free(&out);
	return text;
}
