/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_inspect - the build id of an ELF file and the symbols that it has. Agents and servers rank
 * files of one build id by it.
 */
#ifndef FIRN_CODEC_ELF_ELF_INSPECT_H
#define FIRN_CODEC_ELF_ELF_INSPECT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "codec/elf/elf.h"

/* The best source of names in a file, worst first. Stored in records by name. */
enum elf_quality {
	ELF_QUALITY_NOTHING,
	ELF_QUALITY_DYNSYM,
	ELF_QUALITY_MINI,      /* .gnu_debugdata */
	ELF_QUALITY_GOPCLNTAB, /* with lines and inlined calls */
	ELF_QUALITY_SYMTAB,
	/* Far too little DWARF for so much code: of objects that were linked in, or skeletons. */
	ELF_QUALITY_SOME_DEBUG_INFO,
	ELF_QUALITY_DEBUG_INFO,
	ELF_QUALITIES
};

/* Sections that names or lines come from, as bits. */
enum elf_symbol_section {
	ELF_HAS_DYNSYM = 1,
	ELF_HAS_MINI = 2,
	ELF_HAS_GOPCLNTAB = 4,
	ELF_HAS_SYMTAB = 8,
	ELF_HAS_DEBUG_LINE = 16,
	ELF_HAS_DEBUG_INFO = 32,
};

const char *elf_quality_name(enum elf_quality quality);
/* False when it is none. */
bool elf_quality_parse(struct slice name, enum elf_quality *ret);

/* Names without the dot, comma-separated, best first: "debug_info,symtab"; empty for none. */
void elf_sections_write(unsigned sections, struct strbuf *out);
/* False when there is an unknown one. */
bool elf_sections_parse(struct slice text, unsigned *ret);

struct elf_inspection {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	enum elf_id_kind id_kind;
	enum elf_quality quality;
	unsigned sections;			 /* enum elf_symbol_section */
	char alternate[ELF_BUILD_ID_TEXT_BYTES]; /* of the file that dwz moved DWARF to; or "" */
	bool has_offsets; /* it says where the program's code is in the program's file */
};

/* ERR_INVALID when it is no ELF file, or not a whole one. `name` is for messages. */
int elf_inspect(int fd, const char *name, struct elf_inspection *ret, struct err *err);

/*
 * Whether it is a package of split DWARF (.dwp). Whose it is, its units tell when they are looked
 * up, each by an id of 64 bits. ERR_INVALID when not.
 */
int elf_inspect_package(int fd, const char *name, struct err *err);

#endif
