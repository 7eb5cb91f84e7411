/* SPDX-License-Identifier: Apache-2.0 */
#include "config/letter_case.h"

/* Capital letters from `first` to `last`, each `step` after the other; the small one is `away`. */
struct range {
	uint16_t first, last, step;
	int16_t away;
};

/* UnicodeData.txt, fields 12 and 13. */
static const struct range ranges[] = {
	{ 'A', 'Z', 1, 32 },
	{ 0xc0, 0xd6, 1, 32 },
	{ 0xd8, 0xde, 1, 32 },
	{ 0x100, 0x12e, 2, 1 },
	{ 0x132, 0x136, 2, 1 },
	{ 0x139, 0x147, 2, 1 },
	{ 0x14a, 0x176, 2, 1 },
	{ 0x178, 0x178, 1, 0xff - 0x178 },
	{ 0x179, 0x17d, 2, 1 },
	{ 0x386, 0x386, 1, 0x3ac - 0x386 },
	{ 0x388, 0x38a, 1, 0x3ad - 0x388 },
	{ 0x38c, 0x38c, 1, 0x3cc - 0x38c },
	{ 0x38e, 0x38f, 1, 0x3cd - 0x38e },
	{ 0x391, 0x3a1, 1, 32 },
	{ 0x3a3, 0x3ab, 1, 32 },
	{ 0x400, 0x40f, 1, 80 },
	{ 0x410, 0x42f, 1, 32 },
	{ 0x460, 0x480, 2, 1 },
	{ 0x48a, 0x4be, 2, 1 },
	{ 0x4c1, 0x4cd, 2, 1 },
	{ 0x4d0, 0x52e, 2, 1 },
	{ 0x531, 0x556, 1, 48 },
};
#define RANGES_COUNT (sizeof(ranges) / sizeof(ranges[0]))

static uint32_t lower(uint32_t letter)
{
	for (size_t i = 0; i < RANGES_COUNT; i++) {
		const struct range *range = &ranges[i];

		if (letter >= range->first && letter <= range->last &&
		    (letter - range->first) % range->step == 0)
			return (uint32_t)((int32_t)letter + range->away);
	}
	return letter;
}

static uint32_t upper(uint32_t letter)
{
	if (letter == 0xb5) /* the micro sign is a small mu */
		return 0x39c;
	if (letter == 0x131 || letter == 0x17f || letter == 0x3c2)
		return letter == 0x131 ? 'I' : letter == 0x17f ? 'S' : 0x3a3;
	for (size_t i = 0; i < RANGES_COUNT; i++) {
		const struct range *range = &ranges[i];
		int32_t capital = (int32_t)letter - range->away;

		if (capital >= range->first && capital <= range->last &&
		    (capital - range->first) % range->step == 0)
			return (uint32_t)capital;
	}
	return letter;
}

static void change(struct strbuf *out, struct slice text, uint32_t (*change_letter)(uint32_t))
{
	for (size_t at = 0, bytes; at < text.len; at += bytes) {
		uint8_t first = (uint8_t)text.data[at];
		uint32_t letter;

		bytes = slice_character(slice_tail(text, at));
		if (bytes != 1 && bytes != 2) { /* none of those above */
			bytes = bytes ? bytes : 1;
			strbuf_add(out, text.data + at, bytes);
			continue;
		}
		letter = bytes == 1 ? first
				    : (uint32_t)(first & 0x1f) << 6 |
					      (uint32_t)(text.data[at + 1] & 0x3f);
		letter = change_letter(letter);
		if (letter < 0x80) {
			strbuf_add_byte(out, (char)letter);
		} else {
			strbuf_add_byte(out, (char)(0xc0 | letter >> 6));
			strbuf_add_byte(out, (char)(0x80 | (letter & 0x3f)));
		}
	}
}

void letter_case_lower(struct strbuf *out, struct slice text)
{
	change(out, text, lower);
}

void letter_case_upper(struct strbuf *out, struct slice text)
{
	change(out, text, upper);
}
