/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind information of .NET and code that it is not of: rows ascend, and stay in the code. */
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/dotnet/unwind_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct code_row rows[UNWIND_INFO_ROWS_MAX];
	size_t info_len, count;

	if (size < 1 || size > 65536)
		return 0;
	info_len = data[0] < size - 1 ? data[0] : size - 1;
	count = unwind_info_rows(data + 1, info_len, data + 1 + info_len, size - 1 - info_len,
				 rows);
	if (count > UNWIND_INFO_ROWS_MAX || (count && rows[0].offset))
		abort();
	for (size_t i = 0; i < count; i++)
		if ((i && rows[i].offset <= rows[i - 1].offset) || rows[i].rule >> 15)
			abort();
	return 0;
}
