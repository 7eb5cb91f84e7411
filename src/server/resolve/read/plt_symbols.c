/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/plt_symbols.h"

#include <gelf.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/elf/section_reader.h"

#define SLOTS_MAX ((size_t)1 << 20)
#define STUB_BYTES 16
#define SYMBOL_RANK 1u /* below what a symbol table says */

/* A place in the global offset table, and the text that names what it points to. */
struct slot {
	uint64_t address;
	uint32_t name;
};

struct slots {
	struct slot *items;
	size_t count, capacity;
};

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* "memcpy@plt". 0: the symbol has no name. */
static uint32_t stub_name(Elf *elf, const GElf_Shdr *symbols, const GElf_Sym *symbol,
			  struct symbol_builder *builder)
{
	const char *name = elf_strptr(elf, symbols->sh_link, symbol->st_name);
	struct strbuf text = { 0 };
	uint32_t id;

	if (!name || !*name)
		return 0;
	strbuf_add_text(&text, name);
	strbuf_add_text(&text, "@plt");
	id = symbol_builder_text(builder, strbuf_slice(&text));
	strbuf_free(&text);
	return id;
}

static bool is_slot(uint16_t machine, uint32_t type)
{
	return machine == EM_X86_64 ? type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT
				    : type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

static void read_relocations(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint16_t machine,
			     struct slots *slots, struct symbol_builder *builder)
{
	Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
	Elf_Data *data = elf_getdata(section, NULL), *symbol_data;
	size_t entry_bytes = gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT);
	GElf_Shdr symbols_header;

	if (!symbols || !gelf_getshdr(symbols, &symbols_header) || !data || !entry_bytes ||
	    header->sh_entsize != entry_bytes || symbols_header.sh_type != SHT_DYNSYM)
		return;
	symbol_data = elf_getdata(symbols, NULL);
	for (int i = 0; symbol_data && (size_t)i < data->d_size / entry_bytes && i < INT32_MAX;
	     i++) {
		GElf_Rela relocation;
		GElf_Sym symbol;
		uint32_t name;

		if (slots->count == SLOTS_MAX || !gelf_getrela(data, i, &relocation))
			return;
		if (!is_slot(machine, (uint32_t)GELF_R_TYPE(relocation.r_info)) ||
		    GELF_R_SYM(relocation.r_info) > INT32_MAX ||
		    !gelf_getsym(symbol_data, (int)GELF_R_SYM(relocation.r_info), &symbol))
			continue;
		name = stub_name(elf, &symbols_header, &symbol, builder);
		if (!name)
			continue;
		mem_grow(slots->items, slots->count, slots->capacity);
		slots->items[slots->count++] = (struct slot){ relocation.r_offset, name };
	}
}

/* The slot that the stub at `address` jumps through; false when it is no such stub. */
static bool x86_slot(const uint8_t *stub, uint64_t address, uint64_t *ret)
{
	unsigned at = 0;

	if (stub[0] == 0xf3 && stub[1] == 0x0f && stub[2] == 0x1e && stub[3] == 0xfa)
		at = 4; /* endbr64 */
	if (stub[at] == 0xf2)
		at++; /* bnd */
	if (stub[at] != 0xff || stub[at + 1] != 0x25)
		return false;
	*ret = address + at + 6 + (uint64_t)(int64_t)(int32_t)section_u32(stub + at + 2);
	return true;
}

/* adrp x16, page; ldr x17, [x16, offset]; perhaps behind bti. */
static bool arm64_slot(const uint8_t *stub, uint64_t address, uint64_t *ret)
{
	uint32_t adrp = section_u32(stub), load = section_u32(stub + 4);
	int64_t page;

	if (adrp == 0xd503245f) {
		adrp = load;
		load = section_u32(stub + 8);
		address += 4;
	}
	if ((adrp & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
		return false;
	page = (int64_t)((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3));
	page = (page ^ 0x100000) - 0x100000; /* 21 bits with their sign */
	*ret = (address & ~0xfffull) + (uint64_t)(page * 4096) + (load >> 10 & 0xfff) * 8;
	return true;
}

static const struct slot *slot_at(const struct slots *slots, uint64_t address)
{
	const struct slot key = { .address = address };

	return slots->count ? bsearch(&key, slots->items, slots->count, sizeof(key), compare_slots)
			    : NULL;
}

/* Stubs of 16 bytes, of 8 in .plt.got; those with bti on AArch64 have 24. */
static void read_stubs(const GElf_Shdr *header, struct slice code, uint16_t machine,
		       const struct slots *slots, struct symbol_builder *builder)
{
	size_t step = machine == EM_X86_64 && header->sh_entsize != 8 ? STUB_BYTES : 8, at = 0;

	while (at + STUB_BYTES <= code.len || (step == 8 && at + 8 <= code.len)) {
		uint8_t stub[STUB_BYTES] = { 0 };
		size_t left = code.len - at, len = step;
		const struct slot *slot = NULL;
		uint64_t target;

		memcpy(stub, code.data + at, left < sizeof(stub) ? left : sizeof(stub));
		if (machine == EM_X86_64 ? x86_slot(stub, header->sh_addr + at, &target)
					 : arm64_slot(stub, header->sh_addr + at, &target))
			slot = slot_at(slots, target);
		if (slot) {
			if (machine == EM_AARCH64)
				len = section_u32(stub) == 0xd503245f ? 24 : STUB_BYTES;
			symbol_builder_symbol(
				builder, &(struct symbol_candidate){
						 .address = header->sh_addr + at,
						 .size = len,
						 .section_end = header->sh_addr + header->sh_size,
						 .name = slot->name,
						 .rank = SYMBOL_RANK,
					 });
		}
		at += len;
	}
}

static bool is_plt(const char *name)
{
	return !strcmp(name, ".plt") || !strcmp(name, ".plt.sec") || !strcmp(name, ".plt.got") ||
	       !strcmp(name, ".plt.bnd");
}

static void read_tables(Elf *elf, size_t names, uint16_t machine, const struct slots *slots,
			struct symbol_builder *builder)
{
	Elf_Scn *section = NULL;

	while (slots->count && (section = elf_nextscn(elf, section))) {
		const Elf_Data *data;
		const char *name;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || !is_plt(name) || header.sh_addr > UINT64_MAX - header.sh_size)
			continue;
		data = elf_rawdata(section, NULL);
		if (data && data->d_buf)
			read_stubs(&header, slice_from(data->d_buf, data->d_size), machine, slots,
				   builder);
	}
}

void plt_symbols_read(Elf *elf, uint16_t machine, struct symbol_builder *builder)
{
	struct slots slots = { 0 };
	Elf_Scn *section = NULL;
	size_t names;

	if ((machine != EM_X86_64 && machine != EM_AARCH64) || elf_getshdrstrndx(elf, &names))
		return;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA &&
		    header.sh_flags & SHF_ALLOC)
			read_relocations(elf, section, &header, machine, &slots, builder);
	}
	if (slots.count)
		qsort(slots.items, slots.count, sizeof(*slots.items), compare_slots);
	read_tables(elf, names, machine, &slots, builder);
	free(slots.items);
}
