/* SPDX-License-Identifier: Apache-2.0 */
/* The input is an ELF file with DWARF; its table is built and asked across its code. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/resolve/symbol_reader.h"

#define LOOKUPS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct symbol_table *table)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];

	for (size_t i = 0; i < table->info.segments_count; i++) {
		const struct elf_segment *segment = &table->info.segments[i];

		for (uint64_t k = 0; k < LOOKUPS; k++)
			symbol_table_lookup(table,
					    segment->address + k * (segment->file_bytes / LOOKUPS),
					    lines);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct symbol_limits limits = {
		.file_bytes = 1 << 20,
		.section_bytes = 4 << 20,
		.table_bytes = 16 << 20,
		.entries = 100000,
		.duration_ns = CLOCK_NS_PER_S,
	};
	static int fd = -1;
	struct symbol_input input = { .name = "input" };
	struct symbol_table *table;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		return 0;
	input.fd = fd;
	if (!symbol_table_build(&input, 1, &limits, &table, NULL)) {
		look_up(table);
		symbol_table_free(table);
	}
	return 0;
}
