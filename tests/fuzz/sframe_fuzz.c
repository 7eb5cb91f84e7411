/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SFrame sections from any bytes: functions and their rows. The seeds are those of golden/sframe,
 * the same as versions 2 and 3, and flexible rows by hand, all from sframe_test.
 */
#include "codec/elf/sframe.h"

#include <elf.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
	uint64_t function_start, function_end, last_row;
	bool has_row;
};

static int take_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct walk *walk = context;

	/* What callers rely on: rows rise within the function, and rules are known ones. */
	if (address < walk->function_start || address >= walk->function_end ||
	    (walk->has_row && address <= walk->last_row))
		abort();
	if (rule->cfa > UNWIND_CFA_PLT || rule->ra > UNWIND_VALUE_UNSUPPORTED ||
	    rule->fp > UNWIND_VALUE_UNSUPPORTED)
		abort();
	walk->last_row = address;
	walk->has_row = true;
	return 0;
}

static int take_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	struct walk walk = { .function_start = start, .function_end = end };
	const struct unwind_row_sink rows = { .row = take_row, .context = &walk };
	struct err err;

	if (start >= end)
		abort();
	sframe_rows(context, cookie, &rows, &err);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	static struct section_reader section;
	static struct sframe table;
	const struct unwind_function_sink functions = { .function = take_function,
							.context = &table };
	struct err err;

	for (int i = 0; i < 2; i++) {
		section_reader_open_memory(&section, slice_from(data, size), 0x10000, "input");
		if (!sframe_open(&table, &section, machines[i], &err))
			sframe_functions(&table, &functions, &err);
	}
	return 0;
}
