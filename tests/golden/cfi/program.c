/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose frames differ: none, pushes, a frame pointer, a realigned stack, cold parts. */
typedef long wide __attribute__((vector_size(32)));

int outside(void *a);

int leaf(int a)
{
	return a * 3;
}

int pushes(int a, int b, int c)
{
	return outside(&a) + outside(&b) + outside(&c) + a + b + c;
}

int large(int a)
{
	volatile char b[100000];

	b[a] = (char)a;
	return outside((void *)b) + a;
}

int by_frame_pointer(int a)
{
	volatile char b[a];

	b[0] = (char)a;
	return outside((void *)b) + a;
}

/* gcc restores and remembers around the early return. */
int early_return(int a, int *b)
{
	if (a > 3)
		return outside(b) + outside(&a);
	if (__builtin_expect(a == 2, 0))
		__builtin_trap();
	return *b + outside(b);
}

/* x86-64: a realigned stack with variable size: the CFA is *(rbp-8). */
int realigned(int a, ...)
{
	wide v = { a, a, a, a };
	__builtin_va_list list;
	volatile char b[a];
	wide c[3] = { v, v, v };

	__builtin_va_start(list, a);
	b[0] = (char)__builtin_va_arg(list, int);
	__builtin_va_end(list);
	return outside((void *)c) + outside((void *)b);
}
