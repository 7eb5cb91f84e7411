/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is an ELF file with DWARF, symbols or Go's table: a symbol table is made of it, with
 * small limits, opened and asked across its code.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/resolve/read/symbol_reader.h"
#include "server/resolve/table/symbol_texts.h"

#define LOOKUPS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct symbol_table *table)
{
	struct symbol_texts *texts = symbol_texts_new(table);
	struct symbol_line lines[SYMBOL_CHAIN_MAX];

	for (size_t i = 0; i < table->info.segments_count; i++) {
		const struct elf_segment *segment = &table->info.segments[i];

		for (uint64_t k = 0; k < LOOKUPS; k++)
			symbol_texts_lookup(texts,
					    segment->address + k * (segment->file_bytes / LOOKUPS),
					    lines);
	}
	symbol_texts_free(texts);
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
	static int in = -1, out;
	struct symbol_input input = { .name = "input" };
	struct symbol_report report;
	struct symbol_table *table;
	struct err err;

	if (in < 0) {
		in = memfd_create("input", MFD_CLOEXEC);
		out = memfd_create("table", MFD_CLOEXEC);
	}
	if (in < 0 || ftruncate(in, 0) || ftruncate(out, 0) ||
	    pwrite(in, data, size, 0) != (ssize_t)size)
		return 0;
	input.fd = in;
	if (symbol_reader_write(&input, 1, &limits, NULL, NULL, out, &report, &err))
		return 0;
	if (symbol_table_open(out, "table", &table, &err))
		abort(); /* what we write we can read */
	look_up(table);
	symbol_table_free(table);
	return 0;
}
