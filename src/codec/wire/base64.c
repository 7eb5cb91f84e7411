/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct slice bytes, bool padded, struct strbuf *out)
{
	const unsigned char *p = (const unsigned char *)bytes.data;
	char *to = strbuf_reserve(out, bytes.len / 3 * 4 + 4);
	char *start = to;
	size_t i;

	for (i = 0; i + 3 <= bytes.len; i += 3) {
		uint32_t bits = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];

		for (int shift = 18; shift >= 0; shift -= 6)
			*to++ = alphabet[bits >> shift & 63];
	}
	if (i < bytes.len) {
		bool two = bytes.len - i == 2;
		uint32_t bits = (uint32_t)p[i] << 16 | (two ? (uint32_t)p[i + 1] << 8 : 0);

		*to++ = alphabet[bits >> 18];
		*to++ = alphabet[bits >> 12 & 63];
		if (two)
			*to++ = alphabet[bits >> 6 & 63];
		for (int pad = two ? 1 : 2; padded && pad; pad--)
			*to++ = '=';
	}
	out->len += (size_t)(to - start);
	out->data[out->len] = '\0';
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

/* Puts the bytes of a group of `digits` digits; one digit alone is no group. */
static bool add_group(struct strbuf *out, uint32_t bits, unsigned digits)
{
	if (digits == 1)
		return false;
	bits <<= 6 * (4 - digits);
	for (unsigned i = 0; i + 1 < digits; i++)
		strbuf_add_byte(out, (char)(bits >> (16 - 8 * i)));
	return true;
}

bool base64_decode(struct slice text, struct strbuf *out)
{
	uint32_t bits = 0;
	unsigned digits = 0;

	strbuf_reserve(out, text.len / 4 * 3 + 3);
	for (size_t i = 0; i < text.len; i++) {
		int value = value_of(text.data[i]);

		if (value >= 0) {
			bits = bits << 6 | (uint32_t)value;
			digits++;
		} else {
			/* Padding ends a group of two or three digits. */
			if (text.data[i] != '=' || digits < 2)
				return false;
			if (digits == 2 && (++i == text.len || text.data[i] != '='))
				return false;
		}
		if (digits == 4 || value < 0) {
			if (!add_group(out, bits, digits))
				return false;
			bits = 0;
			digits = 0;
		}
	}
	return digits == 0 || add_group(out, bits, digits);
}
