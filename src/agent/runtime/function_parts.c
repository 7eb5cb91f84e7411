/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jumps are looked for at each byte, whatever the instructions are: what is none leads into a part
 * of another function only if four bytes of the code happen to be its distance.
 */
#include "agent/runtime/function_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order/bisect.h"

/* Encodings, as all linkers and compilers write them. */
#define HEADER_VERSION 1u
#define COUNT_ENCODING 0x03u /* udata4 */
#define TABLE_ENCODING 0x3bu /* datarel, sdata4 */
#define HEADER_BYTES 12u
#define ENTRY_HEAD_BYTES 40u
#define ENTRY_BYTES_AT 12u
#define ENTRY_AUGMENTATION_AT 16u

/* Opcodes of call frame instructions. */
#define OP_DEFINE_FRAME 0x0cu
#define OP_DEFINE_OFFSET 0x0eu
#define OP_KIND 0xc0u
#define OP_SAVED 0x80u

struct entry {
	int32_t code, description; /* from the header on */
};

struct table {
	const struct elf_exports *symbols;
	uint64_t header;
	struct entry *entries;
	size_t count;
};

static bool read_table(const struct elf_exports *symbols, struct table *ret)
{
	uint8_t head[HEADER_BYTES];
	uint32_t count;

	*ret = (struct table){ .symbols = symbols, .header = symbols->frames };
	if (!symbols->frames || !elf_exports_read(symbols, ret->header, head, sizeof(head)) ||
	    head[0] != HEADER_VERSION || head[2] != COUNT_ENCODING || head[3] != TABLE_ENCODING)
		return false;
	memcpy(&count, head + 8, sizeof(count));
	if (!count || count > FUNCTION_PARTS_TABLE_MAX / sizeof(struct entry))
		return false;
	ret->count = count;
	ret->entries = mem_new_array(struct entry, count);
	if (elf_exports_read(symbols, ret->header + sizeof(head), ret->entries,
			     count * sizeof(struct entry)))
		return true;
	free(ret->entries);
	return false;
}

static uint64_t from_header(const struct table *table, int32_t distance)
{
	return table->header + (uint64_t)(int64_t)distance;
}

/* The frame is there from the first instruction on. */
static bool begins_with_frame(const uint8_t *entry)
{
	uint8_t augmentation = entry[ENTRY_AUGMENTATION_AT], op;

	if (augmentation >= ENTRY_HEAD_BYTES - ENTRY_AUGMENTATION_AT - 1)
		return false;
	op = entry[ENTRY_AUGMENTATION_AT + 1 + augmentation];
	return op == OP_DEFINE_FRAME || op == OP_DEFINE_OFFSET || (op & OP_KIND) == OP_SAVED;
}

/* What has the address, and its entry. */
static bool find_extent(const struct table *table, uint64_t address, struct elf_export *ret,
			uint8_t *entry)
{
	size_t low =
		bisect(0, table->count, i, from_header(table, table->entries[i].code) <= address);
	uint32_t bytes;

	if (!low || !elf_exports_read(table->symbols,
				      from_header(table, table->entries[low - 1].description),
				      entry, ENTRY_HEAD_BYTES))
		return false;
	memcpy(&bytes, entry + ENTRY_BYTES_AT, sizeof(bytes));
	*ret = (struct elf_export){ from_header(table, table->entries[low - 1].code), bytes };
	return address - ret->address < bytes;
}

/* The part that has the address; false when a function has it, or nothing. */
static bool find_part(const struct table *table, uint64_t address, struct elf_export *ret)
{
	uint8_t entry[ENTRY_HEAD_BYTES];

	return find_extent(table, address, ret, entry) && begins_with_frame(entry);
}

/* Where the code goes if a jump by a 32-bit distance begins here; 0 = none does. */
static uint64_t jump_target(const uint8_t *code, uint64_t address)
{
	size_t len = code[0] == 0xe9 ? 1 : code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2 : 0;
	int32_t distance;

	if (!len)
		return 0;
	memcpy(&distance, code + len, sizeof(distance));
	return address + len + sizeof(distance) + (uint64_t)(int64_t)distance;
}

static bool has_part(const struct elf_export *parts, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++)
		if (address - parts[i].address < parts[i].bytes)
			return true;
	return false;
}

static size_t find_parts(const struct table *table, const struct elf_export *function,
			 const uint8_t *code, struct elf_export *ret, size_t max)
{
	size_t found = 0;

	for (uint64_t i = 0; i + 6 <= function->bytes && found < max; i++) {
		uint64_t target = jump_target(code + i, function->address + i);

		if (target && target - function->address >= function->bytes &&
		    !has_part(ret, found, target) && find_part(table, target, &ret[found]) &&
		    ret[found].address != function->address)
			found++;
	}
	return found;
}

bool function_extent_find(const struct elf_exports *symbols, uint64_t address,
			  struct elf_export *ret)
{
	uint8_t entry[ENTRY_HEAD_BYTES];
	struct table table;
	bool found;

	if (!read_table(symbols, &table))
		return false;
	found = find_extent(&table, address, ret, entry) && ret->address == address;
	free(table.entries);
	return found;
}

size_t function_parts_find(const struct elf_exports *symbols, const struct elf_export *function,
			   struct elf_export *ret, size_t max)
{
	struct table table;
	size_t found = 0;
	uint8_t *code;

	if (function->bytes > FUNCTION_PARTS_CODE_MAX || !read_table(symbols, &table))
		return 0;
	code = mem_new_array(uint8_t, function->bytes + 1);
	if (elf_exports_read(symbols, function->address, code, function->bytes))
		found = find_parts(&table, function, code, ret, max);
	free(code);
	free(table.entries);
	return found;
}
