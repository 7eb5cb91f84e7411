/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strbuf - a growable byte buffer.
 *
 * Zero-initialised is empty and valid. The bytes always have a NUL after them once anything was
 * added (strbuf_text() for C strings). What is added must not lie inside the buffer itself.
 * Dies as mem.h does when memory is refused. Not thread-safe.
 */
#ifndef FIRN_BASE_STRBUF_H
#define FIRN_BASE_STRBUF_H

#include <stdarg.h>

#include "base/slice.h"

struct strbuf {
	char *data;
	size_t len;
	size_t capacity;
};

void strbuf_free(struct strbuf *buf);  /* and leaves it empty */
void strbuf_wipe(struct strbuf *buf);  /* as strbuf_free, of secrets: zeroes them first */
void strbuf_clear(struct strbuf *buf); /* keeps the memory */

/* Room for `more` bytes after len; returns where they go. Does not change len. */
char *strbuf_reserve(struct strbuf *buf, size_t more);

void strbuf_add(struct strbuf *buf, const void *data, size_t len);
void strbuf_add_slice(struct strbuf *buf, struct slice s);
void strbuf_add_text(struct strbuf *buf, const char *text);
/*
 * For a URI: every byte as "%XX" except letters, digits and "-._~", which mean themselves in any
 * part of it (RFC 3986, section 2.3), and except the characters of `plain`.
 */
void strbuf_add_for_uri(struct strbuf *buf, struct slice text, const char *plain);
void strbuf_addf(struct strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strbuf_addv(struct strbuf *buf, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static inline void strbuf_add_byte(struct strbuf *buf, char byte)
{
	if (buf->len + 2 > buf->capacity)
		strbuf_reserve(buf, 1);
	buf->data[buf->len++] = byte;
	buf->data[buf->len] = '\0';
}

/* Little-endian integers and LEB128, for our own binary formats. */
void strbuf_add_u32(struct strbuf *buf, uint32_t value);
void strbuf_add_u64(struct strbuf *buf, uint64_t value);
void strbuf_add_varint_slow(struct strbuf *buf, uint64_t value);
static inline void strbuf_add_varint(struct strbuf *buf, uint64_t value)
{
	if (value >= 0x80 || buf->len + 2 > buf->capacity) {
		strbuf_add_varint_slow(buf, value);
		return;
	}
	buf->data[buf->len++] = (char)value;
	buf->data[buf->len] = '\0';
}
static inline void strbuf_add_zigzag(struct strbuf *buf, int64_t value)
{
	strbuf_add_varint(buf, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static inline struct slice strbuf_slice(const struct strbuf *buf)
{
	return (struct slice){ buf->data, buf->len };
}

static inline const char *strbuf_text(const struct strbuf *buf)
{
	return buf->data ? buf->data : "";
}

#endif
