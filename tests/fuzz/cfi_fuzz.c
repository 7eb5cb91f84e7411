/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information from any bytes. Four bytes say how they are taken: kind of section,
 * machine, whether zeros end it, how many bytes are the header with its table of functions.
 */
#include "codec/elf/cfi.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>

#define SECTION_ADDRESS 0x2000
#define FUNCTIONS_MAX 64
#define ROWS_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct found {
	uint64_t cookies[FUNCTIONS_MAX];
	size_t count, rows;
	uint64_t last;
	bool has_last;
};

static int take_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	struct found *found = context;

	assert(start && start != end);
	if (found->count == FUNCTIONS_MAX)
		return 1;
	found->cookies[found->count++] = cookie;
	return 0;
}

static int take_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct found *found = context;

	assert(!found->has_last || address > found->last); /* what unwind_sink.h promises */
	assert(rule->cfa <= UNWIND_CFA_PLT && rule->ra <= UNWIND_VALUE_UNSUPPORTED);
	assert(rule->cfa_register < 32 && rule->ra_register < 32 && rule->fp_register < 32);
	found->last = address;
	found->has_last = true;
	return ++found->rows > ROWS_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct section_reader section, header;
	static struct cfi cfi;
	struct found found = { 0 };
	struct unwind_function_sink functions = { take_function, &found };
	struct unwind_row_sink rows = { take_row, &found };
	size_t header_bytes;

	if (size < 4)
		return 0;
	header_bytes = data[3] < size - 4 ? data[3] : size - 4;
	section_reader_open_memory(&header, slice_from(data + 4, header_bytes),
				   SECTION_ADDRESS - header_bytes, "input");
	section_reader_open_memory(&section,
				   slice_from(data + 4 + header_bytes, size - 4 - header_bytes),
				   SECTION_ADDRESS, "input");
	if (cfi_open(&cfi, data[0] & 1 ? CFI_DEBUG_FRAME : CFI_EH_FRAME,
		     data[1] & 1 ? EM_AARCH64 : EM_X86_64, &section, NULL))
		return 0;
	cfi_list(&cfi, data[2] & 1, &functions, NULL);
	cfi_list_by_header(&cfi, &header, &functions, NULL);
	for (size_t i = 0; i < found.count; i++) {
		found.has_last = false;
		cfi_rows(&cfi, found.cookies[i], &rows, NULL);
	}
	return 0;
}
