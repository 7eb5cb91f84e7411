/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_number - HotSpot's compressed numbers: one to five bytes, of which all but the last are
 * high. Before JDK 20 a byte may be 0; since then each counts from 1.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_NUMBER_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JAVA_NUMBER_HIGH 64u /* values of a byte that others follow */

struct java_numbers {
	const uint8_t *bytes;
	size_t len, at;
	bool from_one;
};

/* False at the end of the bytes. */
static inline bool java_number(struct java_numbers *numbers, uint32_t *ret)
{
	uint32_t least = numbers->from_one, low = 256 - JAVA_NUMBER_HIGH;

	*ret = 0;
	for (int i = 0; i < 5; i++) {
		uint8_t byte;

		if (numbers->at >= numbers->len)
			return false;
		byte = numbers->bytes[numbers->at++];
		if (byte < least)
			return false;
		*ret += (uint32_t)(byte - least) << 6 * i;
		if (byte < low)
			return true;
	}
	return true;
}

static inline bool java_signed_number(struct java_numbers *numbers, int32_t *ret)
{
	uint32_t value;

	if (!java_number(numbers, &value))
		return false;
	*ret = (int32_t)(value >> 1 ^ -(value & 1));
	return true;
}

#endif
