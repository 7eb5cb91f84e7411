/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with a part that the compiler moves away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((cold, noinline)) static void fail(const char *what, long n)
{
	fprintf(stderr, "%s %ld\n", what, n);
}
__attribute__((noinline)) static long work(const char *text, long n)
{
	char copy[200];
	long sum = 0;
	for (long i = 0; i < n; i++) {
		snprintf(copy, sizeof(copy), "%s %ld", text, i);
		sum += (long)strlen(copy);
		if (__builtin_expect(sum < 0, 0)) {
			fail(copy, sum);
			fail(text, i);
			abort();
		}
	}
	return sum;
}
__attribute__((noinline)) static long spin(long n)
{
	volatile long sum = 0;
	for (long i = 0; i < n * 200; i++)
		sum += i;
	return sum;
}
int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 1); i++)
		sum += work(argv[0], 50) + spin(40);
	return sum == 42;
}
