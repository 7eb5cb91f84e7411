/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/process/procmaps.h"

#define DELETED SLICE_LITERAL(" (deleted)")
#define NEWLINE SLICE_LITERAL("\\012")

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Takes a number in the base off the front of *line, and the byte `end` after it. */
static bool take_number(struct slice *line, unsigned base, char end, uint64_t *ret)
{
	uint64_t value = 0;
	size_t at = 0;

	for (; at < line->len && line->data[at] != end; at++) {
		int digit = digit_of(line->data[at]);

		if (digit < 0 || (unsigned)digit >= base ||
		    __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (unsigned)digit, &value))
			return false;
	}
	if (at == 0 || at == line->len)
		return false;
	*line = slice_tail(*line, at + 1);
	*ret = value;
	return true;
}

static bool take_permissions(struct slice *line, struct procmaps_line *ret)
{
	static const char set[] = "rwxs", unset[] = "---p";
	bool flags[4];

	if (line->len < 5 || line->data[4] != ' ')
		return false;
	for (size_t i = 0; i < 4; i++) {
		if (line->data[i] != set[i] && line->data[i] != unset[i])
			return false;
		flags[i] = line->data[i] == set[i];
	}
	ret->readable = flags[0];
	ret->writable = flags[1];
	ret->executable = flags[2];
	ret->shared = flags[3];
	*line = slice_tail(*line, 5);
	return true;
}

static void take_path(struct slice line, struct procmaps_line *ret)
{
	while (line.len && line.data[0] == ' ')
		line = slice_tail(line, 1);
	if (line.len > DELETED.len &&
	    slice_equal(slice_tail(line, line.len - DELETED.len), DELETED)) {
		ret->deleted = true;
		line.len -= DELETED.len;
	}
	ret->path = line;
}

int procmaps_parse_line(struct slice line, struct procmaps_line *ret, struct err *err)
{
	struct procmaps_line map = { 0 };
	struct slice rest = line;
	uint64_t major, minor;
	bool valid = take_number(&rest, 16, '-', &map.start) &&
		     take_number(&rest, 16, ' ', &map.end) && map.start < map.end &&
		     take_permissions(&rest, &map) && take_number(&rest, 16, ' ', &map.offset) &&
		     take_number(&rest, 16, ':', &major) && take_number(&rest, 16, ' ', &minor) &&
		     major <= UINT32_MAX && minor <= UINT32_MAX;

	/* A line without a path may end right after the inode. */
	if (valid && slice_find_byte(rest, ' ') == SIZE_MAX) {
		valid = slice_parse_u64(rest, &map.inode);
		rest = (struct slice){ 0 };
	} else if (valid) {
		valid = take_number(&rest, 10, ' ', &map.inode);
	}
	if (!valid)
		return err_set(err, ERR_INVALID, "parse memory map line \"%.*s\": malformed",
			       SLICE_FMT(line));
	map.dev_major = (uint32_t)major;
	map.dev_minor = (uint32_t)minor;
	take_path(rest, &map);
	*ret = map;
	return 0;
}

void procmaps_add_path(struct strbuf *out, struct slice path)
{
	while (path.len) {
		if (slice_starts_with(path, NEWLINE)) {
			strbuf_add_byte(out, '\n');
			path = slice_tail(path, NEWLINE.len);
		} else {
			strbuf_add_byte(out, path.data[0]);
			path = slice_tail(path, 1);
		}
	}
}
