/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/elf_symbols.h"

#include <gelf.h>

#include "base/mem.h"

#define SECTIONS_MAX ((size_t)65536)
#define UNDERSCORES_MAX 3u

/* Where the code of each section is; high 0 for sections without code. */
struct section_span {
	uint64_t low, high;
};

static bool code_span(Elf_Scn *section, struct section_span *ret)
{
	GElf_Shdr header;

	if (!gelf_getshdr(section, &header) ||
	    (header.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) != (SHF_ALLOC | SHF_EXECINSTR) ||
	    __builtin_add_overflow(header.sh_addr, header.sh_size, &ret->high))
		return false;
	ret->low = header.sh_addr;
	return ret->low < ret->high;
}

bool elf_symbols_code(Elf *elf, struct symbol_builder *builder)
{
	Elf_Scn *section = NULL;
	bool found = false;

	while ((section = elf_nextscn(elf, section))) {
		struct section_span span;

		if (!code_span(section, &span))
			continue;
		symbol_builder_code(builder, span.low, span.high);
		found = true;
	}
	return found;
}

/* An array by section index. */
static struct section_span *code_spans(Elf *elf, size_t count)
{
	struct section_span *spans = mem_new_array(struct section_span, count);
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		struct section_span span;
		size_t index = elf_ndxscn(section);

		if (index < count && code_span(section, &span))
			spans[index] = span;
	}
	return spans;
}

/* ELF for ARM, AArch64 and RISC-V mark code and data with such names; ".L" are local labels. */
static bool is_marker(const char *name)
{
	return name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

/*
 * Of several names for one address: one with a size, of type function, global before weak before
 * local, and with fewer leading underscores ("malloc", not "__libc_malloc").
 */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
	uint32_t binding = GELF_ST_BIND(symbol->st_info) == STB_LOCAL  ? 0
			   : GELF_ST_BIND(symbol->st_info) == STB_WEAK ? 1
								       : 2;
	uint32_t typed = GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE;
	uint32_t sized = symbol->st_size != 0;
	uint32_t underscores = 0;

	while (underscores < UNDERSCORES_MAX && name[underscores] == '_')
		underscores++;
	return ((sized << 1 | typed) << 2 | binding) << 2 | (UNDERSCORES_MAX - underscores);
}

static void add_symbol(Elf *elf, const GElf_Shdr *table, const GElf_Sym *symbol,
		       const struct section_span *span, uint32_t file, bool is_arm,
		       struct symbol_builder *builder)
{
	int type = GELF_ST_TYPE(symbol->st_info);
	uint64_t address = is_arm ? symbol->st_value & ~1ull : symbol->st_value; /* Thumb bit */
	const char *name;
	struct slice text;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return;
	if (address < span->low || address >= span->high)
		return;
	name = elf_strptr(elf, table->sh_link, symbol->st_name);
	if (!name || !*name || is_marker(name))
		return;
	/* "timer_create@GLIBC_2.3.3": the version says nothing about the function. */
	text = slice_of(name);
	if (slice_find_byte(text, '@') != SIZE_MAX)
		text.len = slice_find_byte(text, '@');
	symbol_builder_symbol(builder, &(struct symbol_candidate){
					       .address = address,
					       .size = symbol->st_size,
					       .section_end = span->high,
					       .name = symbol_builder_text(builder, text),
					       .file = file,
					       .rank = rank_of(symbol, name),
				       });
}

/* The local symbols behind it are of this source file. */
static uint32_t file_text(Elf *elf, const GElf_Shdr *table, const GElf_Sym *symbol,
			  struct symbol_builder *builder)
{
	const char *name = elf_strptr(elf, table->sh_link, symbol->st_name);

	return name ? symbol_builder_text(builder, slice_of(name)) : 0;
}

static void read_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
		       const struct section_span *spans, size_t spans_count, bool is_arm,
		       struct symbol_builder *builder)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t entry_bytes = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t count = data && entry_bytes ? data->d_size / entry_bytes : 0;
	uint32_t file = 0;
	GElf_Sym symbol;

	if (header->sh_entsize != entry_bytes)
		return;
	for (int i = 0; (size_t)i < count && i < INT32_MAX && !builder->over_budget; i++) {
		if (!gelf_getsym(data, i, &symbol))
			continue;
		if (GELF_ST_TYPE(symbol.st_info) == STT_FILE)
			file = file_text(elf, header, &symbol, builder);
		else if (symbol.st_shndx < spans_count)
			add_symbol(elf, header, &symbol, &spans[symbol.st_shndx],
				   GELF_ST_BIND(symbol.st_info) == STB_LOCAL ? file : 0, is_arm,
				   builder);
	}
}

void elf_symbols_read(Elf *elf, struct symbol_builder *builder)
{
	struct section_span *spans;
	Elf_Scn *section = NULL;
	GElf_Ehdr header;
	size_t count;

	if (!gelf_getehdr(elf, &header) || elf_getshdrnum(elf, &count))
		return;
	if (count > SECTIONS_MAX)
		count = SECTIONS_MAX;
	spans = code_spans(elf, count);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr table;

		if (gelf_getshdr(section, &table) &&
		    (table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM))
			read_table(elf, section, &table, spans, count, header.e_machine == EM_ARM,
				   builder);
	}
	free(spans);
}
