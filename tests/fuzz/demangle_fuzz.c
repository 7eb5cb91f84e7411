/* SPDX-License-Identifier: Apache-2.0 */
/* Demangling of any bytes. */
#include "server/resolve/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct slice name;

	arena_init(&arena, 0);
	demangle(slice_from(data, size), &arena, &name);
	arena_free(&arena);
	return 0;
}
