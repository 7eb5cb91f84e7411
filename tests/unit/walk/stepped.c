/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepped - a small program that walk_test runs one instruction at a time. Built without frame
 * pointers. It calls in all the ways whose frames look different: leaves, large frames, arrays of
 * a length known late, realigned stacks, callbacks through the C library, tail calls, lazy binding.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define FUNCTION __attribute__((noinline))
#else
#define FUNCTION __attribute__((noinline, noclone))
#endif

static volatile long sink;

FUNCTION static long leaf(long n)
{
	return n * 7 + sink;
}

FUNCTION static long large_frame(long n)
{
	volatile char bytes[20000];

	bytes[n & 4095] = (char)n;
	sink += bytes[n & 4095];
	return leaf(n) + bytes[n & 4095];
}

static int compare(const void *a, const void *b)
{
	int first = *(const int *)a, second = *(const int *)b;

	sink += leaf(first);
	return (first > second) - (first < second);
}

FUNCTION static void sort(void)
{
	int values[24];

	for (int i = 0; i < 24; i++)
		values[i] = i * 17 % 24;
	qsort(values, 24, sizeof(values[0]), compare);
	sink += values[3];
}

FUNCTION static long late_length(long n)
{
	char bytes[(n & 63) + 1];

	memset(bytes, (int)n, (size_t)(n & 63) + 1);
	sort(); /* must give back rbp, which this function's frame is found by */
	sink += bytes[n & 63];
	return large_frame(n) + bytes[0];
}

FUNCTION static long realigned(long n)
{
	_Alignas(64) volatile long values[8] = { n };

	values[n & 7] = late_length(n);
	return values[n & 7] + (long)((uintptr_t)values & 63);
}

FUNCTION static long tail(long n)
{
	return realigned(n + 1);
}

FUNCTION static long recurse(int depth)
{
	return depth ? recurse(depth - 1) + sink : tail(depth);
}

int main(void)
{
	char text[64];

	sink += recurse(30);
	snprintf(text, sizeof(text), "%g %s", 1.5 * (double)sink, "text");
	sink += (long)strlen(text);
	return 0;
}
