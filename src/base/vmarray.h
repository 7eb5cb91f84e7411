/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmarray - an array that grows in place.
 *
 * The address range for the largest size is reserved at the start (no memory, no swap is used
 * for it) and opened page-wise as elements are added, so elements never move. One thread adds
 * while others read: a reader who learnt a count through a lock or an acquire load may read the
 * elements below it without any lock, for as long as the array lives. New elements are zeroed.
 *
 * Bounds: max elements given at init; vmarray_add dies as mem.h does when the system refuses
 * memory, and returns NULL when the array is full (callers check vmarray_room first).
 */
#ifndef FIRN_BASE_VMARRAY_H
#define FIRN_BASE_VMARRAY_H

#include <stddef.h>
#include <stdint.h>

struct vmarray {
	void *data;
	size_t element_bytes;
	size_t count;
	size_t max;	    /* elements */
	size_t open_bytes;  /* readable and writable so far */
	size_t range_bytes; /* reserved */
};

void vmarray_init(struct vmarray *array, size_t element_bytes, size_t max);
void vmarray_free(struct vmarray *array);

/* Forgets all elements and gives memory over `keep_bytes` back to the system. */
void vmarray_reset(struct vmarray *array, size_t keep_bytes);

static inline size_t vmarray_room(const struct vmarray *array)
{
	return array->max - array->count;
}

void vmarray_open(struct vmarray *array, size_t bytes); /* so many, at least */

/* Adds `count` zeroed elements and returns the first; NULL when they do not fit below max. */
static inline void *vmarray_add(struct vmarray *array, size_t count)
{
	size_t from = array->count * array->element_bytes;
	size_t end = from + count * array->element_bytes;

	if (count > vmarray_room(array))
		return NULL;
	if (end > array->open_bytes)
		vmarray_open(array, end);
	array->count += count;
	return (char *)array->data + from;
}

#endif
