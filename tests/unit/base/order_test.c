/* SPDX-License-Identifier: Apache-2.0 */
/* Places in what is sorted, heaps, and sorting by digits, each against the simplest way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/order/bisect.h"
#include "base/order/heap.h"
#include "base/order/sort.h"

#define COUNT 200

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void bisect_finds_the_first_place_of_every_array(void **state)
{
	uint32_t seed = 1;
	uint64_t values[COUNT];

	(void)state;
	for (size_t count = 0; count < COUNT; count++) {
		for (size_t i = 0; i < count; i++)
			values[i] = next_random(&seed) % (count + 1);
		qsort(values, count, sizeof(*values), ascending);
		for (uint64_t wanted = 0; wanted <= count + 1; wanted++) {
			size_t from = count / 3, first = from;

			while (first < count && values[first] < wanted)
				first++;
			assert_int_equal(bisect(from, count, i, values[i] < wanted), first);
		}
	}
	assert_int_equal(bisect(7, 7, i, i < 100), 7);
}

static void what_leaves_a_heap_is_in_order(void **state)
{
	uint64_t heap[COUNT], sorted[COUNT];
	uint32_t seed = 2;

	(void)state;
	for (size_t count = 1; count < COUNT; count++) {
		for (size_t i = 0; i < count; i++) {
			sorted[i] = heap[i] = next_random(&seed) % count;
			heap_rise(heap, i, a, b, a < b);
		}
		qsort(sorted, count, sizeof(*sorted), ascending);
		for (size_t left = count, i = 0; left; i++) {
			assert_int_equal(heap[0], sorted[i]);
			heap[0] = heap[--left];
			heap_sink(heap, left, 0, a, b, a < b);
		}
	}
}

static void sinking_from_the_last_parent_on_makes_a_heap(void **state)
{
	uint64_t heap[COUNT];
	uint32_t seed = 3;

	(void)state;
	for (size_t count = 1; count < COUNT; count++) {
		for (size_t i = 0; i < count; i++)
			heap[i] = next_random(&seed) % 50;
		for (size_t i = count / 2; i--;)
			heap_sink(heap, count, i, a, b, a > b);
		for (size_t i = 1; i < count; i++)
			assert_true(heap[i] <= heap[(i - 1) / 2]);
	}
}

static void digits_that_are_alike_keep_their_order(void **state)
{
	uint64_t keys[COUNT], other[COUNT];
	uint32_t seed = 4;

	(void)state;
	for (unsigned bits = 8; bits <= SORT_DIGIT_BITS_MAX; bits += 2) {
		for (size_t i = 0; i < COUNT; i++)
			keys[i] = (uint64_t)(next_random(&seed) % 3000) << 32 | i;
		sort_by_digit(keys, other, COUNT, 32, bits);
		sort_by_digit(other, keys, COUNT, 32 + bits, bits);
		for (size_t i = 1; i < COUNT; i++)
			assert_true(keys[i - 1] < keys[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bisect_finds_the_first_place_of_every_array),
		cmocka_unit_test(what_leaves_a_heap_is_in_order),
		cmocka_unit_test(sinking_from_the_last_parent_on_makes_a_heap),
		cmocka_unit_test(digits_that_are_alike_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
