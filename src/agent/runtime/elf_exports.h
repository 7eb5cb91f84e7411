/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_exports - looks up symbols of an ELF file: exported ones by the dynamic linker's hash table,
 * which stripping leaves, and local functions, if the file has them.
 *
 * For 64-bit little-endian files. Reads with pread, a few small pieces for an exported name. Files
 * are hostile: all offsets and lengths are checked, a look-up in the hash table ends after
 * ELF_EXPORTS_CHAIN_MAX names, and tables of local symbols or of relocations over
 * ELF_EXPORTS_TABLE_MAX bytes are not read. One thread at a time; the file and its description are
 * borrowed.
 */
#ifndef FIRN_AGENT_RUNTIME_ELF_EXPORTS_H
#define FIRN_AGENT_RUNTIME_ELF_EXPORTS_H

#include "codec/elf/elf.h"

#define ELF_EXPORTS_CHAIN_MAX 4096u
#define ELF_EXPORTS_TABLE_MAX ((uint64_t)16 << 20)

struct elf_exports {
	int fd;
	const struct elf_info *info;
	/* Virtual addresses; 0 = there is none. */
	uint64_t names, names_bytes, symbols, hash;
	uint64_t relocations, relocations_bytes;
	uint64_t initialisers, initialisers_bytes; /* DT_INIT_ARRAY */
	uint64_t frames;			   /* .eh_frame_hdr */
	uint32_t hash_head[4]; /* of DT_GNU_HASH: buckets, first symbol, bloom words, bloom shift */
};

struct elf_export {
	uint64_t address, bytes;
};

/* False when the file exports nothing, or not in a way that we read. */
bool elf_exports_open(struct elf_exports *symbols, int fd, const struct elf_info *info);

/* An exported symbol that the file defines. */
bool elf_exports_find(const struct elf_exports *symbols, const char *name, struct elf_export *ret);

/*
 * Functions of the symbol table whose names begin with `prefix`; at most `max`. How many. 0 also
 * where the table was stripped.
 */
size_t elf_exports_find_local(const struct elf_exports *symbols, const char *prefix,
			      struct elf_export *ret, size_t max);

/* The type of the relocation of the word at an address (R_X86_64_...); 0 = it has none. */
uint32_t elf_exports_relocation(const struct elf_exports *symbols, uint64_t address);

/*
 * The relocated words of a table of `count` pointers, as if the file were loaded at its own
 * addresses; 0 = not known, such as a symbol of another file.
 */
void elf_exports_pointers(const struct elf_exports *symbols, uint64_t address, uint64_t *ret,
			  size_t count);

/* Bytes of the file by virtual address; false when it has fewer there. */
bool elf_exports_read(const struct elf_exports *symbols, uint64_t address, void *to, size_t len);

#endif
