/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/names/unknown_code.h"

#include <stdlib.h>

#include "base/mem.h"

void unknown_code_add(struct unknown_code *code, uint64_t address)
{
	if (code->count == UNKNOWN_CODE_MAX)
		return;
	for (size_t i = 0; i < code->count; i++)
		if (code->items[i] == address)
			return;
	mem_grow(code->items, code->count, code->capacity);
	code->items[code->count++] = address;
}

void unknown_code_sift(struct unknown_code *code, bool (*is_known)(const void *, uint64_t),
		       const void *context)
{
	size_t count = 0;

	for (size_t i = 0; i < code->count; i++)
		if (!is_known(context, code->items[i]))
			code->items[count++] = code->items[i];
	code->count = count;
}

uint64_t *unknown_code_take(struct unknown_code *code, size_t *ret_count)
{
	uint64_t *items = code->items;

	*ret_count = code->count;
	*code = (struct unknown_code){ 0 };
	return items;
}

void unknown_code_free(struct unknown_code *code)
{
	free(code->items);
	*code = (struct unknown_code){ 0 };
}
