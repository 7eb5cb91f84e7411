/* SPDX-License-Identifier: Apache-2.0 */
/* image - small ELF files for tests of debuginfo. */
#ifndef FIRN_TESTS_DEBUGINFO_IMAGE_H
#define FIRN_TESTS_DEBUGINFO_IMAGE_H

#include <elf.h>

/* An ELF file of one code segment, a note, and one section besides. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Nhdr note;
	char owner[4];
	unsigned char id[20];
	Elf64_Shdr sections[3];
	char names[64];
	char content[256]; /* of the section; the last bytes of the file */
};

enum shape { STRIPPED, SYMBOLS, DEBUG_FILE };

/* With a GNU build id of 20 bytes `id`. */
struct image make_image(unsigned char id, enum shape shape);

#endif
