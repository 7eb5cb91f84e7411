/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

#include <stddef.h>
#include <string.h>

static const char names[] = "\0.symtab\0.debug_info\0.note.gnu.build-id\0.shstrtab";
#define NAME_SYMTAB 1
#define NAME_DEBUG_INFO 9
#define NAME_SHSTRTAB 40

struct image make_image(unsigned char id, enum shape shape)
{
	struct image image = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_phoff = offsetof(struct image, segments),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2,
			    .e_shoff = offsetof(struct image, sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 2 },
		.segments = { { .p_type = PT_LOAD,
				.p_flags = PF_X,
				.p_filesz = shape == DEBUG_FILE ? 0 : 64,
				.p_memsz = 64 },
			      { .p_type = PT_NOTE,
				.p_offset = offsetof(struct image, note),
				.p_filesz = 36,
				.p_align = 4 } },
		.note = { 4, 20, NT_GNU_BUILD_ID },
		.owner = "GNU",
		.sections = { [1] = { .sh_name =
					      shape == DEBUG_FILE ? NAME_DEBUG_INFO : NAME_SYMTAB,
				      .sh_type = shape == STRIPPED ? SHT_NOBITS : SHT_PROGBITS,
				      .sh_offset = offsetof(struct image, content),
				      .sh_size = sizeof(image.content) },
			      [2] = { .sh_name = NAME_SHSTRTAB,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct image, names),
				      .sh_size = sizeof(names) } },
	};

	memcpy(image.names, names, sizeof(names));
	memset(image.id, id, sizeof(image.id));
	return image;
}
