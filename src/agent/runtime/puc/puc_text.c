/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Lua's lobject.h, struct TString, of 5.2 to 5.4.
 */
#include "agent/runtime/puc/puc_text.h"

#include <string.h>

#include "codec/wire/utf8.h"

#define KIND_AT 8u
#define KIND_MASK 0x0fu
#define KIND_TEXT 4u
#define TEXT_AT 24u
#define PIECE_BYTES 8u /* text is read by pieces, as what is behind may be nobody's */

char *puc_text_read(const struct memory_reader *memory, uint64_t address)
{
	char text[PUC_TEXT_MAX];
	uint8_t kind;
	size_t len = 0;

	if (!address || address & 7 ||
	    !memory_read(memory, address + KIND_AT, &kind, sizeof(kind)) ||
	    (kind & KIND_MASK) != KIND_TEXT)
		return NULL;
	while (len < sizeof(text)) {
		size_t end;

		if (!memory_read(memory, address + TEXT_AT + len, text + len, PIECE_BYTES))
			return NULL;
		end = strnlen(text + len, PIECE_BYTES);
		len += end;
		if (end < PIECE_BYTES)
			break;
	}
	return utf8_copy_repaired(slice_from(text, len));
}
