/* SPDX-License-Identifier: Apache-2.0 */
/* C++ for std::to_chars, which has the shortest digits; the C library has them not. */
#include "codec/wire/decimal.h"

#include <charconv>
#include <math.h>
#include <string.h>

#define DIGITS_MAX 17	/* that any double needs */
#define PLAIN_DIGITS 15 /* larger numbers have an exponent, unless they need more digits */
#define PLAIN_MAX 1e15

extern "C" size_t decimal_put_uint(char *to, uint64_t value)
{
	return (size_t)(std::to_chars(to, to + DECIMAL_BYTES_MAX, value).ptr - to);
}

extern "C" size_t decimal_put_int(char *to, int64_t value)
{
	return (size_t)(std::to_chars(to, to + DECIMAL_BYTES_MAX, value).ptr - to);
}

struct digits {
	char text[DIGITS_MAX];
	int count, exponent; /* the first one counts 10 to this power */
};

/* Of a positive number. */
static struct digits shortest(double value)
{
	char text[DECIMAL_BYTES_MAX]; /* d.ddde+dd */
	const char *end =
		std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
	struct digits digits;
	const char *at = text;

	digits.count = 0;
	for (; *at != 'e'; at++)
		if (*at != '.')
			digits.text[digits.count++] = *at;
	at += at[1] == '+' ? 2 : 1;
	std::from_chars(at, end, digits.exponent);
	return digits;
}

static char *put(char *to, const char *text, int count)
{
	memcpy(to, text, (size_t)count);
	return to + count;
}

static char *put_zeros(char *to, int count)
{
	memset(to, '0', (size_t)count);
	return to + count;
}

static char *put_with_exponent(char *to, const struct digits *digits)
{
	int exponent = digits->exponent;

	to = put(to, digits->text, 1);
	if (digits->count > 1) {
		*to++ = '.';
		to = put(to, digits->text + 1, digits->count - 1);
	}
	*to++ = 'e';
	*to++ = exponent < 0 ? '-' : '+';
	if (exponent < 0)
		exponent = -exponent;
	if (exponent < 10)
		*to++ = '0';
	return std::to_chars(to, to + 3, exponent).ptr;
}

static char *put_plain(char *to, const struct digits *digits)
{
	int whole = digits->exponent + 1;

	if (whole <= 0) {
		to = put(to, "0.", 2);
		to = put_zeros(to, -whole);
		return put(to, digits->text, digits->count);
	}
	if (whole >= digits->count) {
		to = put(to, digits->text, digits->count);
		return put_zeros(to, whole - digits->count);
	}
	to = put(to, digits->text, whole);
	*to++ = '.';
	return put(to, digits->text + whole, digits->count - whole);
}

extern "C" size_t decimal_put_double(char *to, double value)
{
	struct digits digits;
	char *at = to;
	int precision;

	if (value == 0 && signbit(value))
		return (size_t)(put(to, "-0.0", 4) - to);
	if (fabs(value) < PLAIN_MAX && value == (double)(int64_t)value)
		return decimal_put_int(to, (int64_t)value);
	if (value < 0)
		*at++ = '-';
	digits = shortest(fabs(value));
	precision = digits.count > PLAIN_DIGITS ? digits.count : PLAIN_DIGITS;
	at = digits.exponent < -4 || digits.exponent >= precision ? put_with_exponent(at, &digits)
								  : put_plain(at, &digits);
	return (size_t)(at - to);
}
