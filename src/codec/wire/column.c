/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/column.h"

#include <assert.h>

#include "base/budget.h"
#include "base/mem.h"

#define CAPACITY_MIN 64
#define LARGE_BYTES ((size_t)1 << 20) /* from here on by half: what is not used is paid for too */

/* The capacity to have next; exactly what is wanted when there is no more to be had. */
static size_t next_capacity(size_t capacity, const struct column_growth *growth)
{
	size_t want = capacity ? capacity : CAPACITY_MIN, needed = growth->count + growth->more;

	while (want < needed)
		want += want * growth->element_bytes < LARGE_BYTES ? want : want / 2;
	return want;
}

void *column_grow(void *data, size_t *capacity, const struct column_growth *growth)
{
	size_t needed = growth->count + growth->more, want, bytes;

	assert(needed <= growth->elements_max);
	want = next_capacity(*capacity, growth);
	bytes = (want - *capacity) * growth->element_bytes;
	if (!budget_take(growth->budget, bytes)) {
		want = needed;
		bytes = (want - *capacity) * growth->element_bytes;
		if (!budget_take(growth->budget, bytes))
			return NULL;
	}
	*capacity = want;
	return mem_realloc(data, want, growth->element_bytes);
}
