/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slice.h"

int slice_compare(struct slice a, struct slice b)
{
	size_t shorter = a.len < b.len ? a.len : b.len;
	int order = shorter ? memcmp(a.data, b.data, shorter) : 0;

	if (order)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

struct slice slice_tail(struct slice s, size_t from)
{
	if (!s.data) /* NULL + 0 is undefined in C */
		return s;
	if (from > s.len)
		from = s.len;
	return slice_from(s.data + from, s.len - from);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct slice slice_trim(struct slice s)
{
	while (s.len && is_blank(s.data[0]))
		s = slice_tail(s, 1);
	while (s.len && is_blank(s.data[s.len - 1]))
		s.len--;
	return s;
}

size_t slice_find_byte(struct slice s, char byte)
{
	const char *at = s.len ? memchr(s.data, byte, s.len) : NULL;

	return at ? (size_t)(at - s.data) : SIZE_MAX;
}

size_t slice_character(struct slice s)
{
	const unsigned char *p = (const unsigned char *)s.data;
	unsigned char low = 0x80, high = 0xbf;
	size_t need;

	if (!s.len)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		need = 2;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		need = 3;
		low = p[0] == 0xe0 ? 0xa0 : 0x80;
		high = p[0] == 0xed ? 0x9f : 0xbf;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		need = 4;
		low = p[0] == 0xf0 ? 0x90 : 0x80;
		high = p[0] == 0xf4 ? 0x8f : 0xbf;
	} else {
		return 0;
	}
	if (s.len < need || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return need;
}

bool slice_is_utf8(struct slice s)
{
	const unsigned char *p = (const unsigned char *)s.data;
	size_t left = s.len;

	while (left) {
		size_t step;
		uint64_t word;

		for (; left >= sizeof(word); p += sizeof(word), left -= sizeof(word)) {
			memcpy(&word, p, sizeof(word));
			if (((word - 0x0101010101010101ull) | word) & 0x8080808080808080ull)
				break; /* not ASCII alone, or a NUL */
		}
		if (!left)
			break;
		step = slice_character(slice_from(p, left));
		if (!step || !*p)
			return false;
		p += step;
		left -= step;
	}
	return true;
}

struct slice slice_cut(struct slice s, char separator, struct slice *rest)
{
	size_t at = slice_find_byte(s, separator);

	if (at == SIZE_MAX) {
		*rest = slice_tail(s, s.len);
		return s;
	}
	*rest = slice_tail(s, at + 1);
	return slice_from(s.data, at);
}

bool slice_parse_u64(struct slice s, uint64_t *ret)
{
	uint64_t value = 0;

	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value))
			return false;
	}
	*ret = value;
	return true;
}
