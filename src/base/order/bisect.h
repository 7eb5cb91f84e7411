/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bisect - the first place, from `from` to before `to`, at which a condition no longer holds; `to`
 * if it holds everywhere.
 *
 *     size_t first = bisect(0, count, i, items[i].start <= address);
 *
 * `is_before` is an expression of the place `at`. It must hold for a prefix of the places and no
 * others, as in a sorted array; about log2(to - from) places are tested. Inline: a search costs
 * what a hand-written loop would.
 */
#ifndef FIRN_BASE_ORDER_BISECT_H
#define FIRN_BASE_ORDER_BISECT_H

#include <stddef.h>

#define bisect(from, to, at, is_before)                                                            \
	({                                                                                         \
		size_t bisect_from = (from), bisect_to = (to);                                     \
                                                                                                   \
		while (bisect_from < bisect_to) {                                                  \
			size_t at = bisect_from + (bisect_to - bisect_from) / 2;                   \
                                                                                                   \
			if (is_before)                                                             \
				bisect_from = at + 1;                                              \
			else                                                                       \
				bisect_to = at;                                                    \
		}                                                                                  \
		bisect_from;                                                                       \
	})

#endif
