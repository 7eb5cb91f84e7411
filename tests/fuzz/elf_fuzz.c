/* SPDX-License-Identifier: Apache-2.0 */
/* ELF headers, notes and the segment map from any bytes. */
#include <stdlib.h>

#include "codec/elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(void *context, const struct elf_section_info *section)
{
	if (strlen(section->name) >= ELF_SECTION_NAME_BYTES ||
	    section->file_bytes > *(size_t *)context)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_info info;
	struct err err;

	if (!elf_parse_info(slice_from(data, size), "input", &info, &err)) {
		uint64_t address = 0, offset;

		elf_offset_to_address(&info, size / 2, &address);
		elf_address_to_offset(&info, address, &offset);
		elf_restore_offsets(&info);
		elf_offset_to_address(&info, size / 2, &address);
	}
	(void)elf_parse_sections(slice_from(data, size), "input", visit, &size, &err);
	return 0;
}
