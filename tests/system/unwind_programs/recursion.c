/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recursion - samples anywhere in the prologues, epilogues and calls of functions that call
 * themselves and each other: main, (even | odd | three)*.
 */
#include "work.h"

KEEP static uint64_t odd(uint64_t n);
KEEP static uint64_t three(uint64_t n, uint64_t a, uint64_t b, uint64_t c);

KEEP static uint64_t even(uint64_t n)
{
	return n < 2 ? n : odd(n - 1) + three(n - 2, n, n + 1, n + 2);
}

KEEP static uint64_t odd(uint64_t n)
{
	uint64_t local[6] = { n, n + 1, n + 2, n + 3, n + 4, n + 5 };

	__asm__ volatile("" ::"r"(local) : "memory");
	if (n < 2)
		return local[n];
	return even(n - 1) + even(n - 2) + local[n % 6];
}

/* Needs all registers that a callee has to save. */
KEEP static uint64_t three(uint64_t n, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = a * b, y = b * c, z = a * c;

	if (n < 3)
		return x ^ y ^ z;
	a += odd(n - 1);
	b += even(n - 2);
	c += three(n - 3, x, y, z);
	return a ^ b ^ c ^ x ^ y ^ z;
}

int main(int argc, char **argv)
{
	work_begin(argc, argv);
	while (!over())
		work_sink += even(24);
	return 0;
}
