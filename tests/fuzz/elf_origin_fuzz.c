/* SPDX-License-Identifier: Apache-2.0 */
/* Any file: its version and compiler are short texts, or none. A leading 'm': a list of modules. */
#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/elf/elf_origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text)
{
	assert(!text ||
	       (text[0] && strlen(text) <= ELF_ORIGIN_TEXT_MAX && slice_is_utf8(slice_of(text))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_origin origin = { 0 };
	struct elf_info info;

	if (size && data[0] == 'm') {
		elf_origin_take_modules(&origin, slice_from(data + 1, size - 1));
	} else {
		int fd = memfd_create("fuzz", MFD_CLOEXEC);

		assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
		if (!elf_read_info(fd, "fuzz", &info, NULL))
			elf_origin_read(fd, "fuzz", &info, &origin);
		close(fd);
	}
	check(origin.version);
	check(origin.revision);
	check(origin.compiler);
	elf_origin_free(&origin);
	return 0;
}
