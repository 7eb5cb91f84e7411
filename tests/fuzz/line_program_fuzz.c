/* SPDX-License-Identifier: Apache-2.0 */
/* The input is .debug_line, and .debug_line_str and .debug_str as well. */
#include "server/resolve/read/line_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_from(data, size);
	struct line_sections sections = { .line = bytes, .line_str = bytes, .str = bytes };
	struct line_program program;
	struct line_row row;

	if (!line_program_open(&program, &sections, 0, 8, NULL))
		while (line_program_next(&program, &row))
			;
	line_program_close(&program);
	return 0;
}
