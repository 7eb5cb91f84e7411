/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library - time inside the C library and libm, hand-written assembly included: main, NAME_work,
 * then library code only.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "work.h"

static char from[1 << 18], into[1 << 18];

KEEP static void string_work(void)
{
	for (int i = 0; i < 20; i++) {
		memcpy(into, from, sizeof(from) - (size_t)i);
		memset(into, i, 5000);
		work_sink += strlen(from) + (uint64_t)(memchr(from, 0, sizeof(from)) != NULL);
		work_sink += (uint64_t)memcmp(from, into, sizeof(from));
	}
}

KEEP static void format_work(void)
{
	for (int i = 0; i < 200; i++) {
		snprintf(into, 400, "%d %s %.17g %08x %Lg", i, "text", i / 7.0, i, (long double)i);
		work_sink += (uint64_t)strtod("12345.678901234567", NULL);
	}
}

KEEP static void math_work(void)
{
	for (int i = 0; i < 2000; i++)
		work_sink += (uint64_t)(sin(i * 1.1) + exp(i * 0.01) + pow(i, 1.5) + cbrt(i));
}

KEEP static void heap_work(void)
{
	void *blocks[300];

	for (int i = 0; i < 300; i++)
		blocks[i] = calloc(1, (size_t)(i * 97 % 3000 + 1));
	for (int i = 0; i < 300; i++)
		free(blocks[i]);
}

int main(int argc, char **argv)
{
	memset(from, 'x', sizeof(from) - 1);
	work_begin(argc, argv);
	while (!over()) {
		string_work();
		format_work();
		math_work();
		heap_work();
	}
	return 0;
}
