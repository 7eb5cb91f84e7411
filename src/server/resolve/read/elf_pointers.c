/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/elf_pointers.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order/bisect.h"
#include "codec/elf/section_reader.h"

#define POINTERS_MAX ((size_t)8 << 20)
#define SECTIONS_MAX 4096u
#define POINTER_BYTES 8u
#define RELR_WORDS 63u /* that one bitmap is about */

#ifndef SHT_RELR
#define SHT_RELR 19
#endif

static int compare_pointers(const void *a, const void *b)
{
	const struct elf_pointer *x = a, *y = b;

	return (x->place > y->place) - (x->place < y->place);
}

static int compare_sections(const void *a, const void *b)
{
	const struct elf_bytes *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

static void add_pointer(struct elf_pointers *pointers, struct elf_pointer pointer)
{
	if (pointers->count == POINTERS_MAX)
		return;
	mem_grow(pointers->items, pointers->count, pointers->capacity);
	pointers->items[pointers->count++] = pointer;
}

static void read_sections(Elf *elf, struct elf_pointers *pointers)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((section = elf_nextscn(elf, section)) && pointers->sections_count < SECTIONS_MAX) {
		const char *name;
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC) ||
		    header.sh_flags & (SHF_TLS | SHF_COMPRESSED) || header.sh_type == SHT_NOBITS)
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf || header.sh_addr > UINT64_MAX - data->d_size)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		mem_grow(pointers->sections, pointers->sections_count, pointers->sections_capacity);
		pointers->sections[pointers->sections_count++] = (struct elf_bytes){
			.low = header.sh_addr,
			.high = header.sh_addr + data->d_size,
			.data = data->d_buf,
			.is_code = header.sh_flags & SHF_EXECINSTR,
			.is_writable =
				name && (!strcmp(name, ".data") || !strncmp(name, ".got", 4)),
		};
	}
	if (pointers->sections_count)
		qsort(pointers->sections, pointers->sections_count, sizeof(*pointers->sections),
		      compare_sections);
}

const struct elf_bytes *elf_bytes_at(const struct elf_pointers *pointers, uint64_t address)
{
	size_t first = bisect(0, pointers->sections_count, i, pointers->sections[i].low <= address);

	return first && address < pointers->sections[first - 1].high
		       ? &pointers->sections[first - 1]
		       : NULL;
}

/* The word at an address; false: the file has none there. */
static bool word_at(const struct elf_pointers *pointers, uint64_t address, uint64_t *ret)
{
	const struct elf_bytes *section = elf_bytes_at(pointers, address);

	if (!section || section->high - address < POINTER_BYTES)
		return false;
	*ret = section_u64(section->data + (address - section->low));
	return true;
}

struct slice elf_text_at(const struct elf_pointers *pointers, uint64_t address, size_t max)
{
	const struct elf_bytes *section = elf_bytes_at(pointers, address);
	const char *text;
	size_t len;

	if (!section || section->is_code)
		return (struct slice){ 0 };
	text = (const char *)section->data + (address - section->low);
	if (section->high - address < max)
		max = section->high - address;
	len = strnlen(text, max);
	return len < max ? slice_from(text, len) : (struct slice){ 0 };
}

/* What a relocation of RELA says that the pointer at its place will be. */
static bool pointer_of(Elf *elf, uint16_t machine, const GElf_Rela *relocation, Elf_Data *symbols,
		       const GElf_Shdr *symbols_header, struct elf_pointer *ret)
{
	bool is_x86 = machine == EM_X86_64;
	uint32_t type = (uint32_t)GELF_R_TYPE(relocation->r_info);
	uint64_t number = GELF_R_SYM(relocation->r_info);
	GElf_Sym symbol;

	*ret = (struct elf_pointer){ .place = relocation->r_offset,
				     .value = (uint64_t)relocation->r_addend };
	if (type == (is_x86 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE))
		return true;
	if (type != (is_x86 ? R_X86_64_64 : R_AARCH64_ABS64) || !symbols || number > INT32_MAX ||
	    !gelf_getsym(symbols, (int)number, &symbol))
		return false;
	if (symbol.st_shndx != SHN_UNDEF)
		ret->value += symbol.st_value;
	else
		ret->symbol = elf_strptr(elf, symbols_header->sh_link, symbol.st_name);
	return symbol.st_shndx != SHN_UNDEF || ret->symbol;
}

static void read_rela(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint16_t machine,
		      struct elf_pointers *pointers)
{
	Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
	Elf_Data *data = elf_getdata(section, NULL), *symbol_data = NULL;
	size_t entry_bytes = gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT);
	GElf_Shdr symbols_header;

	if (!data || !entry_bytes || header->sh_entsize != entry_bytes)
		return;
	if (symbols && gelf_getshdr(symbols, &symbols_header) &&
	    symbols_header.sh_type == SHT_DYNSYM)
		symbol_data = elf_getdata(symbols, NULL);
	for (int i = 0; (size_t)i < data->d_size / entry_bytes && i < INT32_MAX; i++) {
		struct elf_pointer pointer;
		GElf_Rela relocation;

		if (gelf_getrela(data, i, &relocation) &&
		    pointer_of(elf, machine, &relocation, symbol_data, &symbols_header, &pointer))
			add_pointer(pointers, pointer);
	}
}

static void add_in_place(struct elf_pointers *pointers, uint64_t place)
{
	uint64_t value;

	if (word_at(pointers, place, &value))
		add_pointer(pointers, (struct elf_pointer){ .place = place, .value = value });
}

/* An even entry is an address; an odd one tells which of the 63 words behind it follow. */
static void read_relr(Elf_Scn *section, struct elf_pointers *pointers)
{
	Elf_Data *data = elf_rawdata(section, NULL);
	uint64_t at = 0;

	for (size_t i = 0; data && data->d_buf && i + POINTER_BYTES <= data->d_size;
	     i += POINTER_BYTES) {
		uint64_t entry = section_u64((const uint8_t *)data->d_buf + i);

		if (!(entry & 1)) {
			add_in_place(pointers, entry);
			at = entry + POINTER_BYTES;
			continue;
		}
		for (unsigned bit = 0; bit < RELR_WORDS; bit++)
			if (entry >> (bit + 1) & 1)
				add_in_place(pointers, at + (uint64_t)bit * POINTER_BYTES);
		at += (uint64_t)RELR_WORDS * POINTER_BYTES;
	}
}

/* Words that could be pointers, of a program that lies where it was linked. */
static void read_words(const struct elf_pointers *sections, struct elf_pointers *pointers)
{
	for (size_t i = 0; i < sections->sections_count; i++) {
		const struct elf_bytes *section = &sections->sections[i];
		uint64_t place =
			(section->low + POINTER_BYTES - 1) & ~(uint64_t)(POINTER_BYTES - 1);

		for (; !section->is_code && place < section->high &&
		       section->high - place >= POINTER_BYTES;
		     place += POINTER_BYTES) {
			uint64_t value = section_u64(section->data + (place - section->low));

			if (value && elf_bytes_at(sections, value))
				add_pointer(pointers,
					    (struct elf_pointer){ .place = place, .value = value });
		}
	}
}

/* One pointer of each place: a relocation says more than a word. */
static void sort_pointers(struct elf_pointers *pointers)
{
	size_t kept = 0;

	if (pointers->count)
		qsort(pointers->items, pointers->count, sizeof(*pointers->items), compare_pointers);
	for (size_t i = 0; i < pointers->count; i++) {
		if (!kept || pointers->items[i].place != pointers->items[kept - 1].place)
			pointers->items[kept++] = pointers->items[i];
		else if (pointers->items[i].symbol)
			pointers->items[kept - 1] = pointers->items[i];
	}
	pointers->count = kept;
}

void elf_pointers_read(Elf *elf, const GElf_Ehdr *header, struct elf_pointers *ret)
{
	Elf_Scn *section = NULL;

	*ret = (struct elf_pointers){ 0 };
	read_sections(elf, ret);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr relocations;

		if (!gelf_getshdr(section, &relocations))
			continue;
		if (relocations.sh_type == SHT_RELA)
			read_rela(elf, section, &relocations, header->e_machine, ret);
		else if (relocations.sh_type == SHT_RELR)
			read_relr(section, ret);
	}
	if (header->e_type == ET_EXEC)
		read_words(ret, ret);
	sort_pointers(ret);
}

void elf_pointers_free(struct elf_pointers *pointers)
{
	free(pointers->items);
	free(pointers->sections);
	*pointers = (struct elf_pointers){ 0 };
}

const struct elf_pointer *elf_pointers_at(const struct elf_pointers *pointers, uint64_t place)
{
	const struct elf_pointer key = { .place = place };

	return pointers->count ? bsearch(&key, pointers->items, pointers->count, sizeof(key),
					 compare_pointers)
			       : NULL;
}
