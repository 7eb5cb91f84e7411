/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap - a binary heap: items[0] comes first, and adding or removing an item costs O(log n). The
 * children of place i are 2i + 1 and 2i + 2, and no child comes before its parent.
 *
 * `a_before_b` is an expression of two items, `a` and `b`, whose names the caller gives. Inline.
 */
#ifndef FIRN_BASE_ORDER_HEAP_H
#define FIRN_BASE_ORDER_HEAP_H

#include <stddef.h>

/*
 * The item at `place` was changed to come later, or is new among children that are heaps: it moves
 * down. To take the first away, put the last in its place and let it sink.
 */
#define heap_sink(items, count, place, a, b, a_before_b)                                           \
	({                                                                                         \
		__typeof__(&(items)[0]) heap_items = (items);                                      \
		size_t heap_count = (count), heap_at = (place), heap_child;                        \
		__typeof__(heap_items[0]) a, b, heap_item = heap_items[heap_at];                   \
                                                                                                   \
		while ((heap_child = 2 * heap_at + 1) < heap_count) {                              \
			if (heap_child + 1 < heap_count) {                                         \
				a = heap_items[heap_child + 1];                                    \
				b = heap_items[heap_child];                                        \
				heap_child += (a_before_b) ? 1 : 0;                                \
			}                                                                          \
			a = heap_items[heap_child];                                                \
			b = heap_item;                                                             \
			if (!(a_before_b))                                                         \
				break;                                                             \
			heap_items[heap_at] = heap_items[heap_child];                              \
			heap_at = heap_child;                                                      \
		}                                                                                  \
		heap_items[heap_at] = heap_item;                                                   \
	})

/* The item at `place` was changed to come earlier, or is new as the last one: it moves up. */
#define heap_rise(items, place, a, b, a_before_b)                                                  \
	({                                                                                         \
		__typeof__(&(items)[0]) heap_items = (items);                                      \
		size_t heap_at = (place);                                                          \
		__typeof__(heap_items[0]) a = heap_items[heap_at], b;                              \
                                                                                                   \
		while (heap_at && (b = heap_items[(heap_at - 1) / 2], (a_before_b))) {             \
			heap_items[heap_at] = b;                                                   \
			heap_at = (heap_at - 1) / 2;                                               \
		}                                                                                  \
		heap_items[heap_at] = a;                                                           \
	})

#endif
