/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callbacks - through the C library and back: qsort, qsort_r, bsearch, tsearch and twalk call
 * functions of this program, some of them cheap, so that the library's own code is sampled too.
 */
#include <search.h>
#include <string.h>

#include "work.h"

#define COUNT 3000

static int numbers[COUNT];

static void shuffle(void)
{
	for (unsigned i = 0; i < COUNT; i++)
		numbers[i] = (int)((i * 2654435761u + 12345u) >> 4);
}

KEEP static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

KEEP static int compare_slowly(const void *a, const void *b, void *rounds)
{
	work_rounds(*(const unsigned *)rounds);
	return compare(a, b);
}

KEEP static int compare_in_search(const void *a, const void *b)
{
	spin();
	NO_TAIL_CALL;
	return compare(a, b);
}

KEEP static void sort(void)
{
	shuffle();
	qsort(numbers, COUNT, sizeof(numbers[0]), compare);
	NO_TAIL_CALL;
}

KEEP static void sort_slowly(void)
{
	unsigned rounds = 200;

	shuffle();
	qsort_r(numbers, 300, sizeof(numbers[0]), compare_slowly, &rounds);
	NO_TAIL_CALL;
}

KEEP static void search(void)
{
	int key = numbers[COUNT / 3];

	work_sink += bsearch(&key, numbers, 16, sizeof(numbers[0]), compare_in_search) != NULL;
}

KEEP static void visit(const void *node, VISIT which, int depth)
{
	if (which == leaf)
		work_rounds((uint64_t)(depth + 20));
	work_sink += (uint64_t)(uintptr_t)node;
}

KEEP static void tree(void)
{
	void *root = NULL;

	shuffle();
	for (unsigned i = 0; i < 1000; i++)
		tsearch(&numbers[i], &root, compare);
	twalk(root, visit);
	while (root)
		tdelete(*(int **)root, &root, compare);
}

int main(int argc, char **argv)
{
	work_begin(argc, argv);
	while (!over()) {
		sort();
		sort_slowly();
		search();
		tree();
	}
	return 0;
}
