/* SPDX-License-Identifier: Apache-2.0 */
/* Whole ELF files to unwind tables; whatever comes out has to pass the checks of a table file. */
#include "agent/unwind/table_build.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
	const struct table_image *image;
	uint64_t next;
};

/* Finding a row's first offset has to agree with walking. */
static int check_row(void *context, uint64_t offset, const struct unwind_rule *rule)
{
	struct walk *walk = context;
	struct unwind_rule found;

	assert(offset >= walk->next);
	assert(table_image_find(walk->image, offset, &found));
	assert(!memcmp(&found, rule, sizeof(found)));
	walk->next = offset + 1;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct table_input input = { .fd = -1, .image = slice_from(data, size), .name = "input" };
	struct table_limits limits = { .functions = 10000, .rows = 200000 };
	static int fd = -1;
	struct table_stats stats;
	struct table_file file;
	struct err err;

	if (fd < 0)
		fd = memfd_create("table", MFD_CLOEXEC);
	if (fd < 0 || table_build(&input, fd, &limits, &stats, &err))
		return 0;
	assert(!table_file_open(fd, "table", &file, &err) && !file.damaged_count);
	for (uint32_t i = 0; i < file.header.segments_count; i++) {
		struct table_image image;
		struct walk walk = { &image, 0 };

		assert(!table_image_load(&file, i, &image, &err));
		table_image_walk(&image, check_row, &walk);
		table_image_free(&image);
	}
	return 0;
}
