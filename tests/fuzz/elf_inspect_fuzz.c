/* SPDX-License-Identifier: Apache-2.0 */
/* Uploaded files: what is said of any bytes is within what records can hold. */
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/elf/elf_inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_inspection found;
	struct strbuf sections = { 0 };
	unsigned again;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	if (!elf_inspect(fd, "fuzz", &found, NULL)) {
		assert(found.quality < ELF_QUALITIES);
		assert(strlen(found.build_id) < sizeof(found.build_id));
		assert(strlen(found.alternate) < sizeof(found.alternate));
		elf_sections_write(found.sections, &sections);
		assert(elf_sections_parse(strbuf_slice(&sections), &again));
		assert(again == found.sections);
	}
	strbuf_free(&sections);
	close(fd);
	return 0;
}
