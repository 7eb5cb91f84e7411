/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8 - making outside text well-formed (RFC 3629). Whether it already is: slice_is_utf8, which
 * like these functions counts NUL as malformed.
 */
#ifndef FIRN_CODEC_WIRE_UTF8_H
#define FIRN_CODEC_WIRE_UTF8_H

#include "base/strbuf.h"

/*
 * Appends the first character of `text` (not empty), or U+FFFD for a byte that begins none;
 * returns how many bytes were consumed.
 */
size_t utf8_add_repaired(struct strbuf *out, struct slice text);

/* A copy of all of it, repaired so. The caller frees it. */
char *utf8_copy_repaired(struct slice text);

/* Appends a character, or U+FFFD for a number that is none. */
void utf8_add_character(struct strbuf *out, uint32_t character);

/* Appends characters of UTF-16. */
void utf8_add_units(struct strbuf *out, const uint16_t *units, size_t count);

/* The longest prefix of at most `bytes_max` bytes that does not end inside a character. */
struct slice utf8_cut(struct slice text, size_t bytes_max);

#endif
