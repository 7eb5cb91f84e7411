/* SPDX-License-Identifier: Apache-2.0 */
/* What is extracted of any bytes can be read to its end, and is an ELF file with whole sections. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/elf/elf.h"
#include "codec/elf/elf_extract.h"

#define EXTRACT_BYTES_MAX ((uint64_t)4 << 20)
#define STEP_BYTES 4093u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void skip(void *context, const struct elf_section_info *section)
{
	(void)context;
	(void)section;
}

static void check(const struct elf_extract *extract)
{
	uint64_t bytes = elf_extract_bytes(extract);
	char *image = malloc(bytes + 1);

	if (!image)
		return;
	for (uint64_t at = 0; at < bytes; at += STEP_BYTES) {
		size_t len = bytes - at < STEP_BYTES ? (size_t)(bytes - at) : STEP_BYTES;

		if (elf_extract_read(extract, at, image + at, len, NULL))
			abort();
	}
	if (elf_parse_sections(slice_from(image, bytes), "extract", skip, NULL, NULL))
		abort();
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_extract *extract;
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	if (write(fd, data, size) == (ssize_t)size &&
	    !elf_extract_open(fd, "input", EXTRACT_BYTES_MAX, &extract, NULL)) {
		check(extract);
		elf_extract_close(extract);
	}
	close(fd);
	return 0;
}
