/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what CoreCLR or Mono keeps there: looks at it end, within their
 * bounds, and what they find is consistent. The first bytes choose the version and what is wanted.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/table.h"
#include "agent/runtime/dotnet/dotnet_process.h"
#include "agent/runtime/dotnet/metadata.h"
#include "agent/runtime/dotnet/mono_methods.h"
#include "agent/runtime/dotnet/unwind_info.h"
#include "image_fuzz.h"
#include "mono_image_6.h"

#define WANTED 8u
#define IS_10 1u
#define IS_MONO 2u
#define METHOD_NAME_MAX (METADATA_NAME_MAX > MONO_NAME_MAX ? METADATA_NAME_MAX : MONO_NAME_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_function(const struct dotnet_process *process, uint64_t address)
{
	const struct dotnet_function *function = dotnet_process_find(process, address);

	if (!function)
		return;
	if (address < function->start || address >= function->end ||
	    (function->name && strlen(function->name) > METHOD_NAME_MAX))
		abort();
	for (uint32_t i = 1; i < function->rows_count; i++)
		if (function->rows[i].offset <= function->rows[i - 1].offset)
			abort();
}

static void check_lines(const struct dotnet_process *process)
{
	const struct dotnet_line *lines;
	size_t count = dotnet_process_lines(process, &lines);

	for (size_t i = 0; i < count; i++) {
		if (i && lines[i].number <= lines[i - 1].number)
			abort();
		for (size_t k = 1; k < TABLE_LINE_WORDS; k++)
			if (lines[i].line.rows[k] < lines[i].line.rows[k - 1])
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dotnet_symbols symbols = { .dac = BASE, .contract = BASE };
	struct memory_reader memory = { read_image, NULL };
	struct dotnet_process *process;
	uint64_t wanted[WANTED];

	if (size < 1 + 2 * WANTED)
		return 0;
	symbols.major = data[0] & IS_10 ? 10 : 8;
	if (data[0] & IS_MONO)
		symbols.mono = (struct mono_symbols)MONO_SYMBOLS;
	for (size_t i = 0; i < WANTED; i++)
		wanted[i] = BASE + data[1 + 2 * i] + 256u * data[2 + 2 * i];
	image = data + 1 + 2 * WANTED;
	image_bytes = size - 1 - 2 * WANTED;
	process = dotnet_process_new(&symbols, 0, 1);
	for (int i = 0; i < 2; i++) {
		dotnet_process_read(process, &memory, wanted, WANTED);
		check_lines(process);
	}
	for (size_t i = 0; i < WANTED; i++)
		check_function(process, wanted[i]);
	dotnet_process_give_up_lines(process);
	dotnet_process_free(process);
	return 0;
}
