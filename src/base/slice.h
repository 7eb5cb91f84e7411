/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice - borrowed bytes: a pointer and a length, no terminator, no ownership.
 *
 * Whoever hands out a slice says how long its bytes live. Text in slices is UTF-8 unless said.
 */
#ifndef FIRN_BASE_SLICE_H
#define FIRN_BASE_SLICE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct slice {
	const char *data;
	size_t len;
};

/* For printf: printf("%.*s", SLICE_FMT(s)). Stops at a NUL among the bytes. */
#define SLICE_FMT(s) (int)((s).len > INT_MAX ? INT_MAX : (s).len), (s).data ? (s).data : ""
#define SLICE_LITERAL(text) ((struct slice){ (text), sizeof(text) - 1 })

static inline struct slice slice_of(const char *text)
{
	return (struct slice){ text, text ? strlen(text) : 0 };
}

static inline struct slice slice_from(const void *data, size_t len)
{
	return (struct slice){ (const char *)data, len };
}

static inline bool slice_equal(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_is(struct slice s, const char *text)
{
	return slice_equal(s, slice_of(text));
}

static inline bool slice_starts_with(struct slice s, struct slice prefix)
{
	return s.len >= prefix.len && (!prefix.len || !memcmp(s.data, prefix.data, prefix.len));
}

static inline bool slice_ends_with(struct slice s, struct slice suffix)
{
	return s.len >= suffix.len &&
	       (!suffix.len || !memcmp(s.data + s.len - suffix.len, suffix.data, suffix.len));
}

/* True if the path `s` ends in the shorter path `end`, whole names only: "src/a.c" in "a.c". */
static inline bool slice_ends_in_path(struct slice s, struct slice end)
{
	return end.len && s.len > end.len && s.data[s.len - end.len - 1] == '/' &&
	       slice_ends_with(s, end);
}

/* Bytewise order; a prefix sorts first. */
int slice_compare(struct slice a, struct slice b);

/* Bytes from `from` to the end (empty when past it). */
struct slice slice_tail(struct slice s, size_t from);

/* Index of the first `byte`, or SIZE_MAX. */
size_t slice_find_byte(struct slice s, char byte);

/* Bytes of the well-formed character (RFC 3629) that `s` begins with; 0 when it begins with none.
 */
size_t slice_character(struct slice s);

/* True if the bytes are well-formed UTF-8 without NUL. */
bool slice_is_utf8(struct slice s);

/* Splits off the part before the first `separator`; *rest is what follows (empty when none). */
struct slice slice_cut(struct slice s, char separator, struct slice *rest);

/* Without blanks, tabs and line ends around it. */
struct slice slice_trim(struct slice s);

/* 0 to 15, or -1 for what is no hexadecimal digit. */
static inline int slice_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decimal digits only, whole slice, no overflow. Returns false and leaves *ret alone otherwise. */
MUST_USE bool slice_parse_u64(struct slice s, uint64_t *ret);

#endif
