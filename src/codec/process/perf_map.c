/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/process/perf_map.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes a number and the blanks after it off the front of *line. */
static bool take_number(struct slice *line, uint64_t *ret)
{
	struct slice rest = *line;
	uint64_t value = 0;
	size_t at = 0;

	if (rest.len > 2 && rest.data[0] == '0' && (rest.data[1] | 0x20) == 'x')
		rest = slice_tail(rest, 2);
	for (; at < rest.len && !is_blank(rest.data[at]); at++) {
		int digit = digit_of(rest.data[at]);

		if (digit < 0 || value >> 60)
			return false;
		value = value << 4 | (unsigned)digit;
	}
	if (at == 0 || at == rest.len)
		return false;
	while (at < rest.len && is_blank(rest.data[at]))
		at++;
	*line = slice_tail(rest, at);
	*ret = value;
	return true;
}

int perf_map_parse_line(struct slice line, struct perf_map_line *ret, struct err *err)
{
	struct slice rest = line;
	uint64_t start, bytes, end;

	while (rest.len && is_blank(rest.data[rest.len - 1]))
		rest.len--;
	if (!take_number(&rest, &start) || !take_number(&rest, &bytes) || !rest.len || !bytes ||
	    bytes > UINT32_MAX || __builtin_add_overflow(start, bytes, &end))
		return err_set(err, ERR_INVALID, "parse perf map line \"%.*s\": malformed",
			       SLICE_FMT(line));
	*ret = (struct perf_map_line){ .start = start, .bytes = (uint32_t)bytes, .name = rest };
	return 0;
}
