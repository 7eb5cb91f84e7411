/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, lines and inlined calls of Go's function table from any bytes. The first two bytes say
 * how much of the input, from its end, is the data with inline trees; the table is the rest. Seeds
 * are those of gopclntab and a table by hand that has inlined calls.
 */
#include "codec/elf/gopclntab_lines.h"

#include <elf.h>
#include <stdlib.h>

#define DATA_ADDRESS 0x20000u
#define FUNCTIONS_MAX 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(struct slice text)
{
	if (text.len && !text.data[text.len - 1])
		abort();
}

/* What callers rely on. */
static void check(const struct gopclntab_function *function)
{
	uint64_t last = function->start;

	if (function->start >= function->end)
		abort();
	touch(function->name);
	touch(function->file);
	for (size_t i = 0; i < function->rows_count; i++) {
		const struct gopclntab_row *row = &function->rows[i];

		touch(row->file);
		if (row->address >= function->end ||
		    (i ? row->address <= last : row->address != last))
			abort();
		last = row->address;
	}
	last = function->start;
	for (size_t i = 0; i < function->spans_count; i++) {
		const struct gopclntab_span *span = &function->spans[i];

		if (span->low < last || span->low >= span->high || span->high > function->end ||
		    span->call >= function->calls_count)
			abort();
		last = span->high;
	}
	for (size_t i = 0; i < function->calls_count; i++) {
		touch(function->calls[i].name);
		touch(function->calls[i].file);
		if (function->calls[i].parent >= (int64_t)function->calls_count)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	static struct gopclntab_function function;
	static struct section_reader section;
	static struct gopclntab table;
	size_t tail;

	if (size < 2)
		return 0;
	tail = (size_t)(data[0] | data[1] << 8);
	data += 2;
	size -= 2;
	tail = tail < size ? tail : size;
	for (int i = 0; i < 2; i++) {
		struct gopclntab_lines lines = {
			.table = slice_from(data, size - tail),
			.data = slice_from(data + size - tail, tail),
			.data_address = DATA_ADDRESS,
			.function_data_address = DATA_ADDRESS,
		};

		section_reader_open_memory(&section, lines.table, 0x10000, "input");
		if (gopclntab_open(&table, &section, machines[i], NULL))
			continue;
		lines.layout = table.layout;
		for (uint64_t f = 0; f < table.layout.functions_count && f < FUNCTIONS_MAX; f++)
			if (!gopclntab_lines_read(&lines, f, &function, NULL))
				check(&function);
	}
	return 0;
}
