/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: System V gABI, chapters 4 and 5; DT_GNU_HASH as written by GNU ld, gold and lld.
 */
#include "agent/runtime/elf_exports.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define PROGRAM_HEADERS_MAX 256u
#define DYNAMIC_ENTRIES_MAX 512u
#define SECTIONS_MAX 512u
#define NAME_BYTES_MAX 256u
#define ENTRIES_PER_READ 1024u

static bool read_at(int fd, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;

	if (offset > INT64_MAX - len)
		return false;
	while (done < len) {
		ssize_t got = pread(fd, (char *)to + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

bool elf_exports_read(const struct elf_exports *symbols, uint64_t address, void *to, size_t len)
{
	const struct elf_info *info = symbols->info;

	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];
		uint64_t into = address - segment->address;

		if (into < segment->file_bytes && len <= segment->file_bytes - into)
			return read_at(symbols->fd, segment->offset + into, to, len);
	}
	return false;
}

static void take_dynamic(struct elf_exports *symbols, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_STRTAB:
		symbols->names = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		symbols->names_bytes = entry->d_un.d_val;
		break;
	case DT_SYMTAB:
		symbols->symbols = entry->d_un.d_ptr;
		break;
	case DT_GNU_HASH:
		symbols->hash = entry->d_un.d_ptr;
		break;
	case DT_RELA:
		symbols->relocations = entry->d_un.d_ptr;
		break;
	case DT_RELASZ:
		symbols->relocations_bytes = entry->d_un.d_val;
		break;
	case DT_INIT_ARRAY:
		symbols->initialisers = entry->d_un.d_ptr;
		break;
	case DT_INIT_ARRAYSZ:
		symbols->initialisers_bytes = entry->d_un.d_val;
		break;
	default:
		break;
	}
}

static void read_dynamic(struct elf_exports *symbols, const Elf64_Phdr *segment)
{
	uint64_t count = segment->p_filesz / sizeof(Elf64_Dyn);
	Elf64_Dyn entry;

	for (uint64_t i = 0; i < count && i < DYNAMIC_ENTRIES_MAX; i++) {
		if (!read_at(symbols->fd, segment->p_offset + i * sizeof(entry), &entry,
			     sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			return;
		take_dynamic(symbols, &entry);
	}
}

static bool read_header(const struct elf_exports *symbols, Elf64_Ehdr *ret)
{
	return read_at(symbols->fd, 0, ret, sizeof(*ret)) &&
	       !memcmp(ret->e_ident, ELFMAG, SELFMAG) && ret->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ret->e_ident[EI_DATA] == ELFDATA2LSB;
}

bool elf_exports_open(struct elf_exports *symbols, int fd, const struct elf_info *info)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	*symbols = (struct elf_exports){ .fd = fd, .info = info };
	if (!read_header(symbols, &header) || header.e_phentsize != sizeof(segment))
		return false;
	for (uint32_t i = 0; i < header.e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
		if (!read_at(fd, header.e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
			return false;
		if (segment.p_type == PT_DYNAMIC)
			read_dynamic(symbols, &segment);
		if (segment.p_type == PT_GNU_EH_FRAME)
			symbols->frames = segment.p_vaddr;
	}
	return symbols->names && symbols->symbols && symbols->hash &&
	       elf_exports_read(symbols, symbols->hash, symbols->hash_head,
				sizeof(symbols->hash_head)) &&
	       symbols->hash_head[0] && symbols->hash_head[2];
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* Most names that are not there are known by one word. */
static bool may_have(const struct elf_exports *symbols, uint32_t hash)
{
	uint64_t at = hash / 64 % symbols->hash_head[2], word;
	uint64_t bits = 1ull << hash % 64 | 1ull << (hash >> (symbols->hash_head[3] & 31)) % 64;

	return elf_exports_read(symbols, symbols->hash + 16 + 8 * at, &word, sizeof(word)) &&
	       (word & bits) == bits;
}

/* True if symbol `index` has this name and is defined. */
static bool is_symbol(const struct elf_exports *symbols, uint64_t index, const char *name,
		      struct elf_export *ret)
{
	char text[NAME_BYTES_MAX];
	size_t len = strlen(name) + 1;
	Elf64_Sym symbol;

	if (!elf_exports_read(symbols, symbols->symbols + index * sizeof(symbol), &symbol,
			      sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF || len > sizeof(text) ||
	    symbol.st_name >= symbols->names_bytes ||
	    !elf_exports_read(symbols, symbols->names + symbol.st_name, text, len) ||
	    memcmp(text, name, len) != 0)
		return false;
	*ret = (struct elf_export){ symbol.st_value, symbol.st_size };
	return true;
}

bool elf_exports_find(const struct elf_exports *symbols, const char *name, struct elf_export *ret)
{
	uint32_t hash = hash_name(name), buckets = symbols->hash_head[0];
	uint32_t first = symbols->hash_head[1], index, link;
	uint64_t buckets_at = symbols->hash + 16 + 8ull * symbols->hash_head[2];
	uint64_t chains_at = buckets_at + 4ull * buckets;

	if (!may_have(symbols, hash) ||
	    !elf_exports_read(symbols, buckets_at + 4ull * (hash % buckets), &index,
			      sizeof(index)) ||
	    index < first)
		return false;
	for (uint32_t i = 0; i < ELF_EXPORTS_CHAIN_MAX; i++) {
		if (!elf_exports_read(symbols, chains_at + 4ull * (index - first + i), &link,
				      sizeof(link)))
			return false;
		if ((link | 1) == (hash | 1) && is_symbol(symbols, (uint64_t)index + i, name, ret))
			return true;
		if (link & 1)
			return false;
	}
	return false;
}

/* The section headers of the symbol table and of its names. */
static bool find_symbol_table(const struct elf_exports *symbols, Elf64_Shdr *ret_symbols,
			      Elf64_Shdr *ret_names)
{
	Elf64_Ehdr header;

	if (!read_header(symbols, &header) || header.e_shentsize != sizeof(*ret_symbols))
		return false;
	for (uint32_t i = 0; i < header.e_shnum && i < SECTIONS_MAX; i++) {
		if (!read_at(symbols->fd, header.e_shoff + i * sizeof(*ret_symbols), ret_symbols,
			     sizeof(*ret_symbols)))
			return false;
		if (ret_symbols->sh_type == SHT_SYMTAB && ret_symbols->sh_link < header.e_shnum)
			return read_at(symbols->fd,
				       header.e_shoff + ret_symbols->sh_link * sizeof(*ret_names),
				       ret_names, sizeof(*ret_names)) &&
			       ret_symbols->sh_size <= ELF_EXPORTS_TABLE_MAX &&
			       ret_names->sh_size <= ELF_EXPORTS_TABLE_MAX &&
			       ret_names->sh_size > 0;
	}
	return false;
}

size_t elf_exports_find_local(const struct elf_exports *symbols, const char *prefix,
			      struct elf_export *ret, size_t max)
{
	size_t prefix_len = strlen(prefix), found = 0;
	Elf64_Shdr table, names;
	Elf64_Sym *entries;
	char *text;

	if (!find_symbol_table(symbols, &table, &names))
		return 0;
	entries = mem_new_array(Elf64_Sym, table.sh_size / sizeof(Elf64_Sym) + 1);
	text = mem_new_array(char, names.sh_size);
	if (!read_at(symbols->fd, table.sh_offset, entries, table.sh_size) ||
	    !read_at(symbols->fd, names.sh_offset, text, names.sh_size))
		table.sh_size = 0;
	for (uint64_t i = 0; i < table.sh_size / sizeof(*entries) && found < max; i++) {
		const Elf64_Sym *entry = &entries[i];

		if (ELF64_ST_TYPE(entry->st_info) == STT_FUNC && entry->st_size &&
		    entry->st_shndx != SHN_UNDEF && entry->st_name < names.sh_size &&
		    prefix_len <= names.sh_size - entry->st_name &&
		    !memcmp(text + entry->st_name, prefix, prefix_len))
			ret[found++] = (struct elf_export){ entry->st_value, entry->st_size };
	}
	free(entries);
	free(text);
	return found;
}

typedef bool relocation_visit_f(void *context, const Elf64_Rela *relocation);

/* Until `visit` says that it has what it wants. */
static void each_relocation(const struct elf_exports *symbols, relocation_visit_f *visit,
			    void *context)
{
	uint64_t bytes = symbols->relocations_bytes;
	Elf64_Rela entries[ENTRIES_PER_READ];

	if (!symbols->relocations || bytes > ELF_EXPORTS_TABLE_MAX)
		return;
	for (uint64_t at = 0; at < bytes; at += sizeof(entries)) {
		uint64_t len = bytes - at < sizeof(entries) ? bytes - at : sizeof(entries);

		if (!elf_exports_read(symbols, symbols->relocations + at, entries, len))
			return;
		for (uint64_t i = 0; i < len / sizeof(*entries); i++)
			if (visit(context, &entries[i]))
				return;
	}
}

struct wanted_relocation {
	uint64_t address;
	uint32_t type;
};

static bool is_wanted(void *context, const Elf64_Rela *relocation)
{
	struct wanted_relocation *wanted = context;

	if (relocation->r_offset != wanted->address)
		return false;
	wanted->type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
	return true;
}

uint32_t elf_exports_relocation(const struct elf_exports *symbols, uint64_t address)
{
	struct wanted_relocation wanted = { .address = address };

	each_relocation(symbols, is_wanted, &wanted);
	return wanted.type;
}

struct pointers {
	uint64_t address, *words;
	size_t count;
};

static bool take_pointer(void *context, const Elf64_Rela *relocation)
{
	struct pointers *pointers = context;
	uint64_t into = relocation->r_offset - pointers->address;

	if (into / sizeof(*pointers->words) < pointers->count)
		pointers->words[into / sizeof(*pointers->words)] =
			ELF64_R_TYPE(relocation->r_info) == R_X86_64_RELATIVE
				? (uint64_t)relocation->r_addend
				: 0;
	return false;
}

void elf_exports_pointers(const struct elf_exports *symbols, uint64_t address, uint64_t *ret,
			  size_t count)
{
	struct pointers pointers = { address, ret, count };

	if (!elf_exports_read(symbols, address, ret, count * sizeof(*ret)))
		memset(ret, 0, count * sizeof(*ret));
	each_relocation(symbols, take_pointer, &pointers);
}
