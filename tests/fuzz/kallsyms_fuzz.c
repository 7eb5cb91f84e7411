/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/kallsyms: what is accepted keeps its promises. */
#include <stdlib.h>

#include "codec/process/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_from(data, size);

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);
		struct kallsyms_line symbol;
		struct err err;

		if (kallsyms_parse_line(line, &symbol, &err))
			continue;
		if (!symbol.name.len || symbol.name.len + symbol.module.len > line.len)
			abort();
	}
	return 0;
}
