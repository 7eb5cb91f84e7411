/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/multipart.h"

#include <string.h>
#include <strings.h>

#define BOUNDARY_BYTES_MAX 70 /* RFC 2046 */
#define HEADER_LINES_MAX 32

static bool is_word(struct slice text, const char *word)
{
	return text.len == strlen(word) && !strncasecmp(text.data, word, text.len);
}

/* The value of a parameter behind the first ';' of a header: name="value" or name=value. */
static struct slice parameter(struct slice header, const char *name)
{
	struct slice rest;

	slice_cut(header, ';', &rest);
	while (rest.len) {
		struct slice key = slice_trim(slice_cut(rest, '=', &rest)), value;

		rest = slice_trim(rest);
		if (rest.len && rest.data[0] == '"') {
			value = slice_cut(slice_tail(rest, 1), '"', &rest);
			slice_cut(rest, ';', &rest);
		} else {
			value = slice_trim(slice_cut(rest, ';', &rest));
		}
		if (is_word(key, name))
			return value;
	}
	return (struct slice){ 0 };
}

bool multipart_is(struct slice content_type)
{
	struct slice rest;

	return is_word(slice_trim(slice_cut(content_type, ';', &rest)), "multipart/form-data");
}

static int fail(const struct multipart_reader *reader, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "multipart body: %s at byte %zu", why, reader->at);
}

/* True if "--boundary" stands at `at`. */
static bool is_delimiter(const struct multipart_reader *reader, size_t at)
{
	struct slice rest = slice_tail(reader->body, at);

	return slice_starts_with(rest, SLICE_LITERAL("--")) &&
	       slice_starts_with(slice_tail(rest, 2), reader->boundary);
}

int multipart_begin(struct multipart_reader *reader, struct slice content_type, struct slice body,
		    struct err *err)
{
	*reader = (struct multipart_reader){ .body = body,
					     .boundary = parameter(content_type, "boundary") };
	if (!reader->boundary.len || reader->boundary.len > BOUNDARY_BYTES_MAX)
		return err_set(err, ERR_INVALID,
			       "multipart body: the content type has no boundary of 1 to %d bytes",
			       BOUNDARY_BYTES_MAX);
	if (!is_delimiter(reader, 0))
		return fail(reader, "not the boundary of the content type", err);
	return 0;
}

/* The next line without its end, which is CR LF. */
static bool take_line(struct multipart_reader *reader, struct slice *ret)
{
	struct slice rest = slice_tail(reader->body, reader->at);
	const char *end = rest.len ? memmem(rest.data, rest.len, "\r\n", 2) : NULL;

	if (!end)
		return false;
	*ret = slice_from(rest.data, (size_t)(end - rest.data));
	reader->at += ret->len + 2;
	return true;
}

static int read_headers(struct multipart_reader *reader, struct multipart_part *part,
			struct err *err)
{
	for (int i = 0; i < HEADER_LINES_MAX; i++) {
		struct slice line, value;

		if (!take_line(reader, &line))
			return fail(reader, "the headers of a part do not end", err);
		if (!line.len)
			return 0;
		if (!is_word(slice_trim(slice_cut(line, ':', &value)), "content-disposition"))
			continue;
		part->name = parameter(value, "name");
		part->file_name = parameter(value, "filename");
	}
	return fail(reader, "too many headers in a part", err);
}

/* Where the next "\r\n--boundary" begins, or SIZE_MAX. */
static size_t find_end(const struct multipart_reader *reader)
{
	size_t at = reader->at;

	for (;;) {
		struct slice rest = slice_tail(reader->body, at);
		const char *end = rest.len ? memmem(rest.data, rest.len, "\r\n--", 4) : NULL;

		if (!end)
			return SIZE_MAX;
		at += (size_t)(end - rest.data);
		if (is_delimiter(reader, at + 2))
			return at;
		at += 2;
	}
}

int multipart_next(struct multipart_reader *reader, struct multipart_part *ret, struct err *err)
{
	struct multipart_part part = { { "", 0 }, { "", 0 }, { "", 0 } };
	struct slice line;
	size_t end;
	int rc;

	reader->at += 2 + reader->boundary.len; /* a delimiter stands here */
	if (slice_starts_with(slice_tail(reader->body, reader->at), SLICE_LITERAL("--")))
		return 0;
	if (!take_line(reader, &line) || slice_trim(line).len)
		return fail(reader, "no end of line behind the boundary", err);
	rc = read_headers(reader, &part, err);
	if (rc)
		return rc;
	/* A part may be empty: the delimiter's CR LF is then the one that ended the headers. */
	if (is_delimiter(reader, reader->at)) {
		*ret = part;
		return 1;
	}
	end = find_end(reader);
	if (end == SIZE_MAX)
		return fail(reader, "a part does not end", err);
	part.bytes = slice_from(reader->body.data + reader->at, end - reader->at);
	reader->at = end + 2;
	*ret = part;
	return 1;
}
