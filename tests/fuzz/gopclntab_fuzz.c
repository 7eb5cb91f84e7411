/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's function table from any bytes: functions, their rows, names, and the searches. The seeds are
 * tables of real programs (Go 1.19 for both machines, Go 1.23), cut down to some forty functions of
 * the runtime, and the tables by hand of gopclntab_test.
 */
#include "codec/elf/gopclntab.h"

#include <elf.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
	uint64_t function_start, last_row;
	struct gopclntab *table;
};

static int take_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct walk *walk = context;

	/* What callers rely on: rows rise from the function's start, and rules are known ones. */
	if (address < walk->function_start || (walk->last_row && address <= walk->last_row))
		abort();
	if (rule->cfa > UNWIND_CFA_GOROUTINE || rule->ra > UNWIND_VALUE_UNSUPPORTED)
		abort();
	walk->last_row = address;
	return 0;
}

static int take_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	struct gopclntab *table = context;
	struct walk walk = { .function_start = start, .table = table };
	const struct unwind_row_sink rows = { .row = take_row, .context = &walk };
	char name[GOPCLNTAB_NAME_BYTES_MAX];
	struct err err;

	if (start >= end)
		abort();
	gopclntab_rows(table, cookie, &rows, &err);
	if (walk.last_row >= end)
		abort();
	gopclntab_name(table, end - 1, name, &start, &err);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	static struct section_reader section, relocations;
	static struct gopclntab table;
	const struct unwind_function_sink functions = { .function = take_function,
							.context = &table };
	uint64_t offset = 0, text;
	struct err err;

	for (int i = 0; i < 2; i++) {
		section_reader_open_memory(&section, slice_from(data, size), 0x10000, "input");
		gopclntab_find(&section, machines[i], &offset, &err);
		if (gopclntab_open(&table, &section, machines[i], &err))
			continue;
		gopclntab_functions(&table, &functions, &err);
		section_reader_open_part(&relocations, &section, size / 2, size);
		gopclntab_find_text(&table, &section, &relocations, &text, &err);
	}
	return 0;
}
