/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/hotspot/vm_structs.h"

#include <string.h>

#include "base/mem.h"

#define PAGE_BYTES 4096u
#define PAGES 64u
#define ENTRY_BYTES_MAX 256u

static const char *const symbol_names[VM_SYMBOLS] = {
	[VM_STRUCTS] = "gHotSpotVMStructs",
	[VM_STRUCTS_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[VM_STRUCTS_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[VM_STRUCTS_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[VM_STRUCTS_IS_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[VM_STRUCTS_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[VM_STRUCTS_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[VM_TYPES] = "gHotSpotVMTypes",
	[VM_TYPES_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[VM_TYPES_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[VM_TYPES_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
};

/* The tables' names lie close together: pages that were read are kept for the next ones. */
struct pages {
	const struct memory_reader *memory;
	uint64_t address[PAGES]; /* 0 = none */
	uint8_t bytes[PAGES][PAGE_BYTES];
};

bool vm_symbols_find(const struct elf_exports *exports, struct vm_symbols *ret)
{
	for (size_t i = 0; i < VM_SYMBOLS; i++) {
		struct elf_export found;

		if (!elf_exports_find(exports, symbol_names[i], &found))
			return false;
		ret->at[i] = found.address;
	}
	return true;
}

static const uint8_t *page_at(struct pages *pages, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(PAGE_BYTES - 1);
	size_t slot = (start / PAGE_BYTES) % PAGES;

	if (!start)
		return NULL;
	if (pages->address[slot] != start) {
		pages->address[slot] = 0;
		if (!memory_read(pages->memory, start, pages->bytes[slot], PAGE_BYTES))
			return NULL;
		pages->address[slot] = start;
	}
	return pages->bytes[slot];
}

static bool read_bytes(struct pages *pages, uint64_t address, void *to, size_t len)
{
	uint8_t *out = to;

	while (len) {
		size_t at = address % PAGE_BYTES, some = PAGE_BYTES - at;
		const uint8_t *page = page_at(pages, address);

		if (!page)
			return false;
		if (some > len)
			some = len;
		memcpy(out, page + at, some);
		out += some;
		address += some;
		len -= some;
	}
	return true;
}

static bool read_word(struct pages *pages, uint64_t address, uint64_t *ret)
{
	return read_bytes(pages, address, ret, sizeof(*ret));
}

static bool read_name(struct pages *pages, uint64_t address, char *to)
{
	for (size_t i = 0; i < VM_STRUCTS_NAME_MAX; i++) {
		const uint8_t *page = page_at(pages, address + i);

		if (!page)
			return false;
		to[i] = (char)page[(address + i) % PAGE_BYTES];
		if (!to[i])
			return true;
	}
	to[VM_STRUCTS_NAME_MAX - 1] = 0; /* longer than any that is wanted */
	return true;
}

/* One of the tables, and where things are in its entries. */
struct table {
	uint64_t entry, stride;
	uint64_t at[VM_SYMBOLS];
};

static bool open_table(struct pages *pages, uint64_t bias, const struct vm_symbols *symbols,
		       enum vm_symbol first, enum vm_symbol end, struct table *ret)
{
	for (enum vm_symbol i = first; i < end; i++)
		if (!read_word(pages, symbols->at[i] + bias, &ret->at[i]))
			return false;
	ret->entry = ret->at[first];
	ret->stride = ret->at[first + 1];
	for (enum vm_symbol i = first + 2; i < end; i++)
		if (ret->at[i] > ENTRY_BYTES_MAX - 8)
			return false;
	return ret->entry && ret->stride >= 8 && ret->stride <= ENTRY_BYTES_MAX;
}

static struct vm_wanted *find_wanted(struct vm_wanted *wanted, size_t count, const char *type,
				     const char *field)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(wanted[i].type, type) && !wanted[i].field == !field &&
		    (!field || !strcmp(wanted[i].field, field)))
			return &wanted[i];
	return NULL;
}

static bool is_wanted_type(const struct vm_wanted *wanted, size_t count, const char *type)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(wanted[i].type, type))
			return true;
	return false;
}

static bool take_field(struct pages *pages, const struct table *table, const char *type,
		       struct vm_wanted *wanted, size_t count)
{
	char field[VM_STRUCTS_NAME_MAX];
	struct vm_wanted *found;
	uint32_t is_static;
	uint64_t name;

	if (!read_word(pages, table->entry + table->at[VM_STRUCTS_FIELD], &name) ||
	    !read_name(pages, name, field) ||
	    !read_bytes(pages, table->entry + table->at[VM_STRUCTS_IS_STATIC], &is_static,
			sizeof(is_static)))
		return false;
	found = find_wanted(wanted, count, type, field);
	if (!found)
		return true;
	found->found = true;
	found->is_static = is_static != 0;
	found->at = table->entry + table->at[is_static ? VM_STRUCTS_ADDRESS : VM_STRUCTS_OFFSET];
	return read_word(pages, found->at, &found->value);
}

static bool read_fields(struct pages *pages, struct table *table, struct vm_wanted *wanted,
			size_t count)
{
	char type[VM_STRUCTS_NAME_MAX];

	for (size_t i = 0; i < VM_STRUCTS_MAX; i++, table->entry += table->stride) {
		uint64_t name;

		if (!read_word(pages, table->entry + table->at[VM_STRUCTS_TYPE], &name))
			return false;
		if (!name)
			return true;
		if (!read_name(pages, name, type) ||
		    (is_wanted_type(wanted, count, type) &&
		     !take_field(pages, table, type, wanted, count)))
			return false;
	}
	return false;
}

static bool read_sizes(struct pages *pages, struct table *table, struct vm_wanted *wanted,
		       size_t count)
{
	char type[VM_STRUCTS_NAME_MAX];

	for (size_t i = 0; i < VM_STRUCTS_MAX; i++, table->entry += table->stride) {
		struct vm_wanted *found;
		uint64_t name;

		if (!read_word(pages, table->entry + table->at[VM_TYPES_NAME], &name))
			return false;
		if (!name)
			return true;
		if (!read_name(pages, name, type))
			return false;
		found = find_wanted(wanted, count, type, NULL);
		if (!found)
			continue;
		found->found = true;
		found->at = table->entry + table->at[VM_TYPES_SIZE];
		if (!read_word(pages, found->at, &found->value))
			return false;
	}
	return false;
}

bool vm_structs_read(const struct memory_reader *memory, uint64_t bias,
		     const struct vm_symbols *symbols, struct vm_wanted *wanted, size_t count)
{
	struct pages *pages = mem_new(struct pages);
	struct table table;
	bool is_read;

	pages->memory = memory;
	is_read = open_table(pages, bias, symbols, VM_STRUCTS, VM_TYPES, &table) &&
		  read_fields(pages, &table, wanted, count) &&
		  open_table(pages, bias, symbols, VM_TYPES, VM_SYMBOLS, &table) &&
		  read_sizes(pages, &table, wanted, count);
	free(pages);
	return is_read;
}
