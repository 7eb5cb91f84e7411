/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decimal - numbers as text, many of them. Not locale-dependent, pure.
 *
 * `to` has DECIMAL_BYTES_MAX bytes; no NUL is put behind the text. Each returns its length.
 */
#ifndef FIRN_CODEC_WIRE_DECIMAL_H
#define FIRN_CODEC_WIRE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DECIMAL_BYTES_MAX 32u

size_t decimal_put_uint(char *to, uint64_t value);
size_t decimal_put_int(char *to, int64_t value);

/*
 * A finite number: the fewest digits that read back as it, and of those the nearest, laid out as
 * printf's %g does. Negative zero is "-0.0": "-0" is an integer to readers, which has no sign.
 */
size_t decimal_put_double(char *to, double value);

#ifdef __cplusplus
}
#endif

#endif
