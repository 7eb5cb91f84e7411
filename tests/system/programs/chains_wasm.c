/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of calls that are known, for wasm_test: compiled to WebAssembly, each with a `SHAPE` and
 * so many ROUNDS. No function may be inlined into another, or become a jump.
 */
#include <stddef.h>

#define APART __attribute__((noinline))
#define DEPTH 300
#define LOOPS 20000
#define FILLED 65536

static volatile unsigned int sink;
static unsigned char filled[FILLED];

APART unsigned int hot_leaf(unsigned int seed)
{
	for (unsigned int i = 0; i < LOOPS; i++)
		seed = seed * 1103515245u + (seed >> 7) + i;
	return seed;
}

APART unsigned int middle(unsigned int seed)
{
	return hot_leaf(seed) + 1;
}

APART unsigned int dive(unsigned int depth, unsigned int seed)
{
	return depth ? dive(depth - 1, seed) + 1 : middle(seed) + 1;
}

APART unsigned int recursion(unsigned int seed)
{
	return dive(DEPTH, seed) + 1;
}

/* Through a table. */
typedef unsigned int shape_f(unsigned int seed);

APART unsigned int circle(unsigned int seed)
{
	return middle(seed) + 3;
}

APART unsigned int square(unsigned int seed)
{
	return middle(seed) + 4;
}

static shape_f *volatile shapes[] = { circle, square };

APART unsigned int indirect(unsigned int seed)
{
	return shapes[seed & 1](seed) + 1;
}

/* Functions of few instructions, which spend much of their time where they begin and end. */
APART unsigned int tiny(unsigned int seed)
{
	return seed * 3 + 1;
}

APART unsigned int little(unsigned int seed)
{
	return tiny(seed) + tiny(seed + 1);
}

APART unsigned int small(unsigned int seed)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < LOOPS / 80; i++)
		sum += little(seed + i);
	return sum;
}

/* Values on the stack, beside the caller's. */
APART unsigned int many(unsigned int a, unsigned int b, unsigned int c, unsigned int d,
			unsigned int e, unsigned int f, unsigned int g, unsigned int h,
			unsigned int i, unsigned int j)
{
	return middle(a + b + c + d + e + f + g + h + i + j) + j;
}

APART unsigned int arguments(unsigned int seed)
{
	return many(seed, 1, 2, 3, 4, 5, 6, 7, 8, seed) + 1;
}

/* Functions that jump to the next one, which then has their place. */
#ifdef __wasm_tail_call__
#define TAIL __attribute__((musttail))
APART unsigned int last(unsigned int a, unsigned int b, unsigned int c, unsigned int d,
			unsigned int e, unsigned int f, unsigned int g, unsigned int h,
			unsigned int i, unsigned int j)
{
	return (a ^ b ^ c) + d + e + f + g + h + i + j;
}

APART unsigned int next(unsigned int a, unsigned int b, unsigned int c, unsigned int d,
			unsigned int e, unsigned int f, unsigned int g, unsigned int h,
			unsigned int i, unsigned int j)
{
	TAIL return last(b, a, c, e, d, f, g, h, j, i);
}

APART unsigned int tail(unsigned int seed)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < LOOPS / 80; i++)
		sum += next(seed, i, 2, 3, 4, 5, 6, 7, 8, 9);
	return sum;
}
#endif

/* Calls of the host. */
APART unsigned int grows(unsigned int seed)
{
	for (unsigned int i = 0; i < LOOPS / 80; i++)
		seed += (unsigned int)__builtin_wasm_memory_grow(0, 0);
	return seed;
}

APART unsigned int host(unsigned int seed)
{
	return grows(seed) + 1;
}

APART unsigned int fills(unsigned int seed)
{
	for (unsigned int i = 0; i < 8; i++) {
		__builtin_memset(filled, (int)seed, FILLED - (seed & 1));
		seed += filled[seed & (FILLED - 1)];
	}
	return seed;
}

APART unsigned int filling(unsigned int seed)
{
	return fills(seed) + 1;
}

__attribute__((export_name("wizer-initialize"))) void initialize(void)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		sink = SHAPE(sink) + 1;
}
