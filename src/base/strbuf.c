/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

#define STRBUF_BYTES_MIN ((size_t)64)
#define VARINT_BYTES_MAX 10u

void strbuf_free(struct strbuf *buf)
{
	free(buf->data);
	*buf = (struct strbuf){ 0 };
}

void strbuf_wipe(struct strbuf *buf)
{
	if (buf->data)
		explicit_bzero(buf->data, buf->capacity);
	strbuf_free(buf);
}

void strbuf_clear(struct strbuf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

char *strbuf_reserve(struct strbuf *buf, size_t more)
{
	size_t need;

	if (__builtin_add_overflow(buf->len + 1, more, &need))
		need = SIZE_MAX; /* refused below */
	if (need > buf->capacity) {
		size_t capacity = buf->capacity ? buf->capacity : STRBUF_BYTES_MIN;

		while (capacity < need)
			capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity;
		buf->data = mem_realloc(buf->data, capacity, 1);
		buf->capacity = capacity;
		buf->data[buf->len] = '\0';
	}
	return buf->data + buf->len;
}

void strbuf_add(struct strbuf *buf, const void *data, size_t len)
{
	char *to = strbuf_reserve(buf, len);

	if (len)
		memcpy(to, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void strbuf_add_slice(struct strbuf *buf, struct slice s)
{
	strbuf_add(buf, s.data, s.len);
}

void strbuf_add_text(struct strbuf *buf, const char *text)
{
	strbuf_add(buf, text, strlen(text));
}

void strbuf_addv(struct strbuf *buf, const char *format, va_list args)
{
	char *to = strbuf_reserve(buf, STRBUF_BYTES_MIN);
	size_t room = buf->capacity - buf->len;
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(to, room, format, args);
	if (len > 0 && (size_t)len >= room)
		vsnprintf(strbuf_reserve(buf, (size_t)len), (size_t)len + 1, format, again);
	va_end(again);
	if (len > 0)
		buf->len += (size_t)len;
	else
		*to = '\0';
}

void strbuf_add_for_uri(struct strbuf *buf, struct slice text, const char *plain)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c && c < 0x80 && (isalnum(c) || strchr("-._~", c) || strchr(plain, c)))
			strbuf_add_byte(buf, (char)c);
		else
			strbuf_addf(buf, "%%%02X", c);
	}
}

void strbuf_addf(struct strbuf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	strbuf_addv(buf, format, args);
	va_end(args);
}

void strbuf_add_u32(struct strbuf *buf, uint32_t value)
{
	unsigned char bytes[4];

	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	strbuf_add(buf, bytes, sizeof(bytes));
}

void strbuf_add_u64(struct strbuf *buf, uint64_t value)
{
	strbuf_add_u32(buf, (uint32_t)value);
	strbuf_add_u32(buf, (uint32_t)(value >> 32));
}

void strbuf_add_varint_slow(struct strbuf *buf, uint64_t value)
{
	char *to = strbuf_reserve(buf, VARINT_BYTES_MAX), *at = to;

	for (; value >= 0x80; value >>= 7)
		*at++ = (char)(value | 0x80);
	*at++ = (char)value;
	*at = '\0';
	buf->len += (size_t)(at - to);
}
