/* SPDX-License-Identifier: Apache-2.0 */
/* ELF headers, notes and the segment map from any bytes. */
#include "codec/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_info info;
	struct err err;

	if (!elf_parse_info(slice_from(data, size), "input", &info, &err)) {
		uint64_t address = 0, offset;

		elf_offset_to_address(&info, size / 2, &address);
		elf_address_to_offset(&info, address, &offset);
	}
	return 0;
}
