/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/column.h"

#include "base/mem.h"

#define CAPACITY_MIN 64

void *column_grow(void *data, size_t count, size_t *capacity, size_t more, size_t element_bytes,
		  size_t elements_max)
{
	size_t want = *capacity ? *capacity : CAPACITY_MIN;

	if (count >= elements_max)
		return NULL;
	while (want < count + more)
		want *= 2;
	*capacity = want;
	return mem_realloc(data, want, element_bytes);
}
