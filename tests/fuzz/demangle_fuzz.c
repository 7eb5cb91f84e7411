/* SPDX-License-Identifier: Apache-2.0 */
/* Demangling of any bytes, in all modes. */
#include "server/resolve/display/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct slice name;

	arena_init(&arena, 0);
	for (int mode = DEMANGLE_FULL; mode <= DEMANGLE_NONE; mode++)
		demangle_as(slice_from(data, size), (enum demangle_mode)mode, &arena, &name);
	arena_free(&arena);
	return 0;
}
