/* SPDX-License-Identifier: Apache-2.0 */
/* lua_numbers - numbers in bytes that were read out of a process; `at` + their size is in them. */
#ifndef FIRN_AGENT_RUNTIME_LUA_LUA_NUMBERS_H
#define FIRN_AGENT_RUNTIME_LUA_LUA_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t lua_u16(const uint8_t *bytes, size_t at)
{
	uint16_t number;

	memcpy(&number, bytes + at, sizeof(number));
	return number;
}

static inline uint32_t lua_u32(const uint8_t *bytes, size_t at)
{
	uint32_t number;

	memcpy(&number, bytes + at, sizeof(number));
	return number;
}

static inline uint64_t lua_u64(const uint8_t *bytes, size_t at)
{
	uint64_t number;

	memcpy(&number, bytes + at, sizeof(number));
	return number;
}

#endif
