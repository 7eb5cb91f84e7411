/* SPDX-License-Identifier: Apache-2.0 */
/* largest - the largest of many values: a heap of so many with the smallest at its top. */
#ifndef FIRN_SERVER_QUERY_SHAPE_LARGEST_H
#define FIRN_SERVER_QUERY_SHAPE_LARGEST_H

#include <stddef.h>
#include <stdint.h>

/* Replaces the smallest, which is heap[0]. A heap of zeros is one. count >= 1. */
static inline void largest_sink(int64_t *heap, size_t count, int64_t value)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < count) {
		child += child + 1 < count && heap[child + 1] < heap[child];
		if (heap[child] >= value)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = value;
}

#endif
