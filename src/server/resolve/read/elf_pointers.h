/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_pointers - the pointers in the data of an ELF file, as the dynamic linker would leave them:
 * from its relocations (RELA, RELR), and in programs that are not relocated from the words
 * themselves. x86-64 and AArch64.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_ELF_POINTERS_H
#define FIRN_SERVER_RESOLVE_READ_ELF_POINTERS_H

#include <gelf.h>
#include <stdbool.h>

#include "base/slice.h"

struct elf_pointer {
	uint64_t place;	    /* address of the pointer */
	uint64_t value;	    /* where it points to; with a symbol: how far behind that */
	const char *symbol; /* of another file, in the ELF file's memory; NULL: it is in this one */
};

/* Bytes of one section, by address. */
struct elf_bytes {
	uint64_t low, high;
	const uint8_t *data;
	bool is_code;
	bool is_writable; /* at run time, too: .data, the global offset table */
};

struct elf_pointers {
	struct elf_pointer *items; /* by place */
	size_t count, capacity;
	struct elf_bytes *sections; /* by address */
	size_t sections_count, sections_capacity;
};

/* Damaged pointers, and those over a bound, are left out. The file must live as long. */
void elf_pointers_read(Elf *elf, const GElf_Ehdr *header, struct elf_pointers *ret);
void elf_pointers_free(struct elf_pointers *pointers);

/* The pointer at a place, or NULL. */
const struct elf_pointer *elf_pointers_at(const struct elf_pointers *pointers, uint64_t place);

/* The section that has the address, or NULL. */
const struct elf_bytes *elf_bytes_at(const struct elf_pointers *pointers, uint64_t address);

/* The text at an address, without its NUL; empty: there is none of at most `max` bytes. */
struct slice elf_text_at(const struct elf_pointers *pointers, uint64_t address, size_t max);

#endif
