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
	array->data = mmap(NULL, array->range_bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (array->data == MAP_FAILED)
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

static void open_to(struct vmarray *array, size_t bytes)
{
	size_t step = array->open_bytes / 2 > STEP_BYTES ? array->open_bytes / 2 : STEP_BYTES;
	size_t open = round_up(bytes > array->open_bytes + step ? bytes : array->open_bytes + step,
			       STEP_BYTES);

	if (open > array->range_bytes)
		open = array->range_bytes;
	if (mprotect((char *)array->data + array->open_bytes, open - array->open_bytes,
		     PROT_READ | PROT_WRITE))
		die("open", open);
	mem_prefer_huge_pages((char *)array->data + array->open_bytes, open - array->open_bytes);
	array->open_bytes = open;
}

void *vmarray_add(struct vmarray *array, size_t count)
{
	size_t from = array->count * array->element_bytes;
	size_t need = count * array->element_bytes;

	if (count > vmarray_room(array))
		return NULL;
	if (from + need > array->open_bytes)
		open_to(array, from + need);
	assert(from + need <= array->open_bytes);
	array->count += count;
	return (char *)array->data + from;
}
