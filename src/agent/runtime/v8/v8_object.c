/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_object.h"

#include <string.h>

#define ARRAY_HEAD_WORDS 2u /* map, length */

uint64_t v8_word_of(const struct v8_layout *layout, const void *bytes)
{
	uint64_t word;
	uint32_t half;

	if (!layout->is_compressed) {
		memcpy(&word, bytes, sizeof(word));
		return word;
	}
	memcpy(&half, bytes, sizeof(half));
	return half & 1 ? layout->cage | half : (uint64_t)(uint32_t)((int32_t)half >> 1) << 32;
}

bool v8_word_read(const struct memory_reader *memory, const struct v8_layout *layout,
		  uint64_t address, uint64_t *ret)
{
	uint8_t bytes[sizeof(*ret)];

	if (!memory_read(memory, address, bytes, v8_word_bytes(layout)))
		return false;
	*ret = v8_word_of(layout, bytes);
	return true;
}

/* While garbage is collected an object that has moved has its new address in place of its map. */
static bool is_moved(uint64_t map)
{
	return map && (map & 7) == 0;
}

uint16_t v8_type(const struct memory_reader *memory, const struct v8_layout *layout, uint64_t word)
{
	uint64_t map;
	uint16_t type;

	if (!v8_is_object(word) || !v8_word_read(memory, layout, word - 1, &map) ||
	    (!layout->is_compressed && is_moved(map) &&
	     !memory_read(memory, map, &map, sizeof(map))) ||
	    !v8_is_object(map) ||
	    !memory_read(memory, map - 1 + layout->map_type, &type, sizeof(type)))
		return V8_NO_FIELD;
	return type;
}

uint64_t v8_array_content(const struct v8_layout *layout, uint64_t array)
{
	return array - 1 + (uint64_t)ARRAY_HEAD_WORDS * v8_word_bytes(layout);
}

bool v8_array_length(const struct memory_reader *memory, const struct v8_layout *layout,
		     uint64_t array, uint32_t *ret)
{
	uint64_t at = array - 1 + v8_word_bytes(layout), length;

	if (!v8_is_object(array))
		return false;
	if (layout->are_lengths_raw)
		return memory_read(memory, at, ret, sizeof(*ret)) && *ret <= INT32_MAX;
	return v8_word_read(memory, layout, at, &length) && v8_number(length, ret);
}

bool v8_array_read(const struct memory_reader *memory, const struct v8_layout *layout,
		   uint64_t array, uint32_t index, uint64_t *ret)
{
	return v8_word_read(
		memory, layout,
		v8_array_content(layout, array) + (uint64_t)index * v8_word_bytes(layout), ret);
}
