/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect - what an ELF file is good for: whose it is and which symbols it can give.
 */
#ifndef FIRN_SERVER_DEBUGINFO_INSPECT_H
#define FIRN_SERVER_DEBUGINFO_INSPECT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "codec/elf/elf.h"

/* The best source of names in a file, worst first. Stored in records by name. */
enum debuginfo_quality {
	DEBUGINFO_NOTHING,
	DEBUGINFO_DYNSYM,
	DEBUGINFO_MINI,	     /* .gnu_debugdata */
	DEBUGINFO_GOPCLNTAB, /* with lines and inlined calls */
	DEBUGINFO_SYMTAB,
	/* Far too little DWARF for so much code: of objects that were linked in, or skeletons. */
	DEBUGINFO_SOME_DEBUG_INFO,
	DEBUGINFO_DEBUG_INFO,
	DEBUGINFO_QUALITIES
};

/* Sections that names or lines come from, as bits. */
enum debuginfo_section {
	DEBUGINFO_HAS_DYNSYM = 1,
	DEBUGINFO_HAS_MINI = 2,
	DEBUGINFO_HAS_GOPCLNTAB = 4,
	DEBUGINFO_HAS_SYMTAB = 8,
	DEBUGINFO_HAS_DEBUG_LINE = 16,
	DEBUGINFO_HAS_DEBUG_INFO = 32,
};

const char *debuginfo_quality_name(enum debuginfo_quality quality);
/* False when it is none. */
bool debuginfo_quality_parse(struct slice name, enum debuginfo_quality *ret);

/* Names without the dot, comma-separated, best first: "debug_info,symtab"; empty for none. */
void debuginfo_sections_write(unsigned sections, struct strbuf *out);
/* False when there is an unknown one. */
bool debuginfo_sections_parse(struct slice text, unsigned *ret);

struct debuginfo_inspection {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	enum elf_id_kind id_kind;
	enum debuginfo_quality quality;
	unsigned sections;			 /* enum debuginfo_section */
	char alternate[ELF_BUILD_ID_TEXT_BYTES]; /* of the file that dwz moved DWARF to; or "" */
	bool has_offsets; /* it says where the program's code is in the program's file */
};

/* ERR_INVALID when it is no ELF file, or not a whole one. `name` is for messages. */
int debuginfo_inspect(int fd, const char *name, struct debuginfo_inspection *ret, struct err *err);

/*
 * Whether it is a package of split DWARF (.dwp). Whose it is, its units tell when they are looked
 * up, each by an id of 64 bits. ERR_INVALID when not.
 */
int debuginfo_inspect_package(int fd, const char *name, struct err *err);

#endif
