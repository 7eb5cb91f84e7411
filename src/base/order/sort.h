/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort - one pass of a radix sort. Passes over all digits of a key, lowest first, sort by the whole
 * key, in time linear in the number of keys.
 */
#ifndef FIRN_BASE_ORDER_SORT_H
#define FIRN_BASE_ORDER_SORT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SORT_DIGIT_BITS_MAX 10u

/*
 * Sorts `from` into `to`, another array, by the digit of `bits` bits (a constant) at bit `shift`.
 * Stable.
 */
static inline void sort_by_digit(const uint64_t *from, uint64_t *to, size_t count, unsigned shift,
				 unsigned bits)
{
	uint32_t places[1u << SORT_DIGIT_BITS_MAX], digits = 1u << bits, next = 0;

	assert(bits <= SORT_DIGIT_BITS_MAX && count <= UINT32_MAX);
	memset(places, 0, digits * sizeof(*places));
	for (size_t i = 0; i < count; i++)
		places[from[i] >> shift & (digits - 1)]++;
	for (uint32_t i = 0; i < digits; i++) {
		uint32_t alike = places[i];

		places[i] = next;
		next += alike;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i] >> shift & (digits - 1)]++] = from[i];
}

#endif
