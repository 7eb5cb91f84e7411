/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vmarray.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

#define STEP_BYTES ((size_t)64 * 1024) /* opened at a time while small; a whole number of pages */
#define POPULATE_FROM_BYTES ((size_t)256 * 1024) /* arrays that grow on */
#define HUGE_FROM_BYTES ((size_t)1 << 20)	 /* larger arrays are opened by whole huge pages */

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

static void die(const char *what, size_t bytes)
{
	fprintf(stderr, "firn: cannot %s %zu bytes of memory: %m\n", what, bytes);
	abort();
}

void vmarray_init(struct vmarray *array, size_t element_bytes, size_t max)
{
	size_t bytes;

	if (__builtin_mul_overflow(element_bytes, max, &bytes)) {
		errno = EOVERFLOW;
		die("reserve", SIZE_MAX);
	}
	*array = (struct vmarray){ .element_bytes = element_bytes, .max = max };
	array->range_bytes = round_up(bytes ? bytes : 1, STEP_BYTES);
	if (array->range_bytes > MEM_HUGE_PAGE_BYTES)
		array->range_bytes = round_up(array->range_bytes, MEM_HUGE_PAGE_BYTES);
	array->data = mem_map_range(array->range_bytes, PROT_NONE, MAP_NORESERVE);
	if (!array->data)
		die("reserve", array->range_bytes);
}

void vmarray_free(struct vmarray *array)
{
	if (array->data)
		munmap(array->data, array->range_bytes);
	*array = (struct vmarray){ 0 };
}

void vmarray_reset(struct vmarray *array, size_t keep_bytes)
{
	size_t used = array->count * array->element_bytes;
	size_t keep = array->open_bytes;

	if (keep_bytes < keep)
		keep = round_up(keep_bytes, STEP_BYTES);
	/* Pages given back read as zeros. The system refuses when they are locked in memory. */
	if (array->open_bytes > keep &&
	    !madvise((char *)array->data + keep, array->open_bytes - keep, MADV_DONTNEED) &&
	    used > keep)
		used = keep;
	if (used)
		memset(array->data, 0, used);
	array->count = 0;
}

void vmarray_open(struct vmarray *array, size_t bytes)
{
	size_t step = array->open_bytes / 2 > STEP_BYTES ? array->open_bytes / 2 : STEP_BYTES;
	size_t open =
		round_up(bytes > array->open_bytes + step ? bytes : array->open_bytes + step,
			 array->open_bytes < HUGE_FROM_BYTES ? STEP_BYTES : MEM_HUGE_PAGE_BYTES);

	if (open > array->range_bytes)
		open = array->range_bytes;
	if (mprotect((char *)array->data + array->open_bytes, open - array->open_bytes,
		     PROT_READ | PROT_WRITE))
		die("open", open);
	mem_prefer_huge_pages((char *)array->data + array->open_bytes, open - array->open_bytes);
	if (array->open_bytes >= POPULATE_FROM_BYTES &&
	    open - array->open_bytes < MEM_HUGE_PAGE_BYTES)
		mem_populate((char *)array->data + array->open_bytes, open - array->open_bytes);
	array->open_bytes = open;
	assert(bytes <= open);
}
