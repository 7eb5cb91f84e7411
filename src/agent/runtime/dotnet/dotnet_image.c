/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/dotnet_image.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"

#define HEADER_BYTES_MAX 4096u
#define NATIVE_HEADER_SIGNATURE 0x00525452u /* "RTR" */
#define SECTIONS_MAX 64u
#define SECTION_RUNTIME_FUNCTIONS 102u
#define SECTION_METHOD_ENTRIES 103u
#define FUNCTION_BYTES 12u
#define BLOCK_METHODS 16u
#define METHODS_MAX (1u << 20)

struct directory {
	uint32_t at, bytes;
};

/* A part of the image that is read from its start to its end. */
struct cursor {
	struct code_memory *memory;
	uint64_t base;
	uint32_t at;
};

/* Numbers of 1 to 5 bytes, whose first one's low bits say how many. */
static uint32_t take_number(struct cursor *cursor)
{
	uint64_t at = cursor->base + cursor->at;
	uint8_t bytes[5] = { 0 };
	uint32_t len = 1;

	bytes[0] = code_memory_u8(cursor->memory, at);
	while (len < 5 && bytes[0] >> (len - 1) & 1)
		len++;
	if (!code_memory_read(cursor->memory, at, bytes, len))
		return 0;
	cursor->at += len;
	if (len == 5)
		return bytes[1] | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3] << 16 |
		       (uint32_t)bytes[4] << 24;
	return (bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
		(uint32_t)bytes[3] << 24) >>
	       len;
}

/* Where an array's element is: a tree of four levels for each block of 16; false = it has none. */
static bool find_element(struct cursor *cursor, uint32_t table, uint32_t entry_bytes,
			 uint32_t index)
{
	uint64_t entry = cursor->base + table + (uint64_t)entry_bytes * (index / BLOCK_METHODS);
	uint32_t offset;

	if (entry_bytes == 1)
		offset = code_memory_u8(cursor->memory, entry);
	else if (entry_bytes == 2)
		offset = code_memory_u16(cursor->memory, entry);
	else
		offset = code_memory_u32(cursor->memory, entry);
	cursor->at = table + offset;
	for (uint32_t bit = BLOCK_METHODS / 2; bit; bit /= 2) {
		uint32_t at = cursor->at, value = take_number(cursor);

		if (index & bit && value & 2) {
			cursor->at = at + (value >> 2);
			continue;
		}
		if (!(index & bit) && value & 1)
			continue;
		/* A leaf where there is only one below. */
		return !(value & 3) && value >> 2 == (index & (BLOCK_METHODS - 1));
	}
	return true;
}

/* The array of methods' entries: by row of the method, the number of its function. */
static void read_methods(struct code_memory *memory, struct dotnet_image *image,
			 const struct directory *section)
{
	struct cursor cursor = { memory, image->base, section->at };
	uint32_t head = take_number(&cursor), count = head >> 2, table = cursor.at;
	uint32_t entry_bytes = 1u << (head & 3);

	if (count > METHODS_MAX || entry_bytes > 4)
		return;
	image->methods = mem_new_array(uint32_t, image->functions_count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t function;

		if (!find_element(&cursor, table, entry_bytes, i))
			continue;
		function = take_number(&cursor);
		function >>= function & 1 ? 2 : 1;
		if (function < image->functions_count)
			image->methods[function] = i + 1;
	}
}

static void read_native_header(struct code_memory *memory, struct dotnet_image *image, uint32_t at)
{
	uint64_t header = image->base + at;
	uint32_t sections = code_memory_u32(memory, header + 12);
	struct directory methods = { 0 };

	if (code_memory_u32(memory, header) != NATIVE_HEADER_SIGNATURE)
		return;
	for (uint32_t i = 0; i < sections && i < SECTIONS_MAX; i++) {
		uint64_t section = header + 16 + 12ull * i;
		uint32_t kind = code_memory_u32(memory, section);
		struct directory where = { code_memory_u32(memory, section + 4),
					   code_memory_u32(memory, section + 8) };

		if (kind == SECTION_RUNTIME_FUNCTIONS &&
		    where.bytes / FUNCTION_BYTES <= DOTNET_IMAGE_FUNCTIONS_MAX) {
			image->functions = image->base + where.at;
			image->functions_count = where.bytes / FUNCTION_BYTES;
		}
		if (kind == SECTION_METHOD_ENTRIES)
			methods = where;
	}
	if (image->functions_count && methods.bytes)
		read_methods(memory, image, &methods);
}

static void open_image(struct code_memory *memory, uint64_t base, struct dotnet_image *ret)
{
	uint32_t header = code_memory_u32(memory, base + 60), native;
	uint64_t optional = base + header + 24, clr;

	if (header > HEADER_BYTES_MAX || code_memory_u32(memory, base + header) != 0x4550 ||
	    code_memory_u16(memory, optional) != 0x20b ||
	    code_memory_u32(memory, optional + 108) < 15)
		return;
	clr = base + code_memory_u32(memory, optional + 112 + 8 * 14);
	native = code_memory_u32(memory, clr + 64);
	ret->base = base;
	if (clr != base && native)
		read_native_header(memory, ret, native);
}

void dotnet_image_read(struct code_memory *memory, uint64_t start, struct dotnet_image *ret)
{
	if (code_memory_u16(memory, start) == 0x5a4d)
		open_image(memory, start, ret);
}

void dotnet_image_fini(struct dotnet_image *image)
{
	free(image->methods);
	*image = (struct dotnet_image){ 0 };
}

static struct dotnet_runtime_function function_at(struct code_memory *memory,
						  const struct dotnet_image *image, uint32_t number)
{
	struct dotnet_runtime_function function = { 0 };

	code_memory_read(memory, image->functions + (uint64_t)FUNCTION_BYTES * number, &function,
			 sizeof(function));
	return function;
}

bool dotnet_image_find(struct code_memory *memory, const struct dotnet_image *image,
		       uint64_t address, struct dotnet_runtime_function *ret, uint32_t *ret_number)
{
	uint32_t low = 0, high = image->functions_count;
	uint64_t at = address - image->base;

	if (!image->base || at > UINT32_MAX)
		return false;
	low = bisect(low, high, i, function_at(memory, image, i).begin <= at);
	if (!low)
		return false;
	*ret = function_at(memory, image, low - 1);
	*ret_number = low - 1;
	return at < ret->end;
}
