/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/code_memory.h"

#include <string.h>

#include "base/mem.h"

struct code_memory *code_memory_new(const struct memory_reader *memory)
{
	struct code_memory *made = mem_realloc(NULL, 1, sizeof(*made));

	code_memory_begin(made, memory);
	return made;
}

void code_memory_begin(struct code_memory *memory, const struct memory_reader *from)
{
	memory->memory = from;
	memset(memory->addresses, 0, sizeof(memory->addresses));
	memset(memory->is_there, 0, sizeof(memory->is_there));
	memory->reads_left = CODE_MEMORY_READS_MAX;
}

bool code_memory_is_spent(const struct code_memory *memory)
{
	return !memory->reads_left;
}

/* False, and all is spent, when there were not so many left. */
static bool spend(struct code_memory *memory, uint32_t reads)
{
	bool enough = memory->reads_left > reads;

	memory->reads_left = enough ? memory->reads_left - reads : 0;
	return enough;
}

static const uint8_t *page_at(struct code_memory *memory, uint64_t page)
{
	uint32_t slot = page / CODE_MEMORY_PAGE & (CODE_MEMORY_PAGES - 1);

	if (memory->addresses[slot] != page) {
		if (!spend(memory, CODE_MEMORY_PAGE_READS))
			return NULL;
		memory->addresses[slot] = page;
		memory->is_there[slot] =
			memory_read(memory->memory, page, memory->pages[slot], CODE_MEMORY_PAGE);
	}
	return memory->is_there[slot] ? memory->pages[slot] : NULL;
}

bool code_memory_read(struct code_memory *memory, uint64_t address, void *to, size_t len)
{
	uint8_t *at = to;

	if (address < CODE_MEMORY_PAGE || address + len < address || !spend(memory, 1))
		return false;
	while (len) {
		size_t into = address % CODE_MEMORY_PAGE, some = CODE_MEMORY_PAGE - into;
		const uint8_t *page = page_at(memory, address - into);

		if (!page)
			return false;
		if (some > len)
			some = len;
		memcpy(at, page + into, some);
		at += some;
		address += some;
		len -= some;
	}
	return true;
}

static bool read_from_page(void *context, uint64_t address, void *to, size_t len)
{
	struct code_memory *memory = context;
	size_t into = address % CODE_MEMORY_PAGE;
	const uint8_t *page = NULL;

	if (len <= CODE_MEMORY_PAGE - into)
		page = page_at(memory, address - into);
	if (!page)
		return memory_read(memory->memory, address, to, len);
	memcpy(to, page + into, len);
	return true;
}

struct memory_reader code_memory_reader(struct code_memory *memory)
{
	return (struct memory_reader){ read_from_page, memory };
}

uint64_t code_memory_u64(struct code_memory *memory, uint64_t address)
{
	uint64_t value = 0;

	return code_memory_read(memory, address, &value, sizeof(value)) ? value : 0;
}

uint32_t code_memory_u32(struct code_memory *memory, uint64_t address)
{
	uint32_t value = 0;

	return code_memory_read(memory, address, &value, sizeof(value)) ? value : 0;
}

uint16_t code_memory_u16(struct code_memory *memory, uint64_t address)
{
	uint16_t value = 0;

	return code_memory_read(memory, address, &value, sizeof(value)) ? value : 0;
}

uint8_t code_memory_u8(struct code_memory *memory, uint64_t address)
{
	uint8_t value = 0;

	return code_memory_read(memory, address, &value, sizeof(value)) ? value : 0;
}

bool code_memory_text(struct code_memory *memory, uint64_t address, char ret[CODE_TEXT_MAX])
{
	for (size_t i = 0; i < CODE_TEXT_MAX; i++) {
		if (!code_memory_read(memory, address + i, &ret[i], 1))
			return false;
		if (!ret[i])
			return i > 0;
	}
	return false;
}
