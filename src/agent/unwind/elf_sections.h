/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_sections - where unwind information is in an ELF file, and where its code begins.
 *
 * For 64-bit little-endian programs and libraries. Sections are found by name; a file whose
 * section headers were stripped still has PT_GNU_EH_FRAME. Compressed sections are taken for
 * missing. Everything is read with pread through a window.
 */
#ifndef FIRN_AGENT_UNWIND_ELF_SECTIONS_H
#define FIRN_AGENT_UNWIND_ELF_SECTIONS_H

#include <stdbool.h>

#include "codec/elf/elf.h"
#include "codec/elf/section_reader.h"

enum elf_section {
	ELF_SECTION_EH_FRAME,
	ELF_SECTION_EH_FRAME_HDR, /* or PT_GNU_EH_FRAME */
	ELF_SECTION_DEBUG_FRAME,
	ELF_SECTION_GOPCLNTAB,
	ELF_SECTION_SFRAME, /* or PT_GNU_SFRAME */
	ELF_SECTION_PLT,
	ELF_SECTION_PLT_SEC,
	ELF_SECTION_PLT_GOT,
	ELF_SECTION_IPLT,
	ELF_SECTION_GO_BUILDINFO, /* all Go programs have it */
	/* Where the description of a Go module may be, and its relocations. */
	ELF_SECTION_GO_MODULE,
	ELF_SECTION_DATA,
	ELF_SECTION_NOPTRDATA,
	ELF_SECTION_DATA_REL_RO,
	ELF_SECTION_RELA,
	ELF_SECTION_RELA_DYN,
	ELF_SECTIONS
};

struct elf_range {
	uint64_t offset, bytes, address; /* in the file; bytes 0 = there is none */
};

struct elf_layout {
	struct elf_info info;
	struct elf_range sections[ELF_SECTIONS];
	uint64_t entry;	 /* e_entry */
	bool is_program; /* it is started at `entry`: an executable, no library */
};

/* Opens bytes of the file for reading; they end where the file ends. */
void elf_range_open(int fd, struct slice image, const char *name, const struct elf_range *range,
		    struct section_reader *ret);

/* From an open file, or from `image` when fd is -1. ERR_INVALID, ERR_UNSUPPORTED, ERR_IO. */
int elf_layout_read(int fd, struct slice image, const char *name, struct elf_layout *ret,
		    struct err *err);

#endif
