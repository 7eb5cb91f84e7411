/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_object - words of V8's objects, their kinds, and arrays, in a process's memory.
 *
 * A word is an object's address + 1, or a number in the upper half. Compressed words, which are
 * half as long, become what they would be otherwise.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_OBJECT_H
#define FIRN_AGENT_RUNTIME_V8_V8_OBJECT_H

#include <stdbool.h>

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/v8/v8_layout.h"

static inline bool v8_is_object(uint64_t word)
{
	return (word & 3) == 1;
}

/* A number that is not negative. False: the word is none. */
static inline bool v8_number(uint64_t word, uint32_t *ret)
{
	*ret = (uint32_t)(word >> 32);
	return (uint32_t)word == 0 && *ret <= INT32_MAX;
}

static inline uint32_t v8_word_bytes(const struct v8_layout *layout)
{
	return layout->is_compressed ? 4 : 8;
}

/* A word as it is in memory, of v8_word_bytes. */
uint64_t v8_word_of(const struct v8_layout *layout, const void *bytes);

bool v8_word_read(const struct memory_reader *memory, const struct v8_layout *layout,
		  uint64_t address, uint64_t *ret);

/* The kind of the object that a word points at; V8_NO_FIELD = none, or it has gone. */
uint16_t v8_type(const struct memory_reader *memory, const struct v8_layout *layout, uint64_t word);

/* Where the elements, or bytes, of an array begin. */
uint64_t v8_array_content(const struct v8_layout *layout, uint64_t array);

/* How many elements, or bytes, an array has that a word points at; at most INT32_MAX. */
bool v8_array_length(const struct memory_reader *memory, const struct v8_layout *layout,
		     uint64_t array, uint32_t *ret);

bool v8_array_read(const struct memory_reader *memory, const struct v8_layout *layout,
		   uint64_t array, uint32_t index, uint64_t *ret);

#endif
