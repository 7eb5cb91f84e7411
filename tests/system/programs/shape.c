/* SPDX-License-Identifier: Apache-2.0 */
/* Functions at addresses that tests ask for; never has to run. */
#include <stdio.h>

volatile unsigned sink;

__attribute__((noinline)) void corner(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i * i;
}

__attribute__((noinline)) void polygon(unsigned n)
{
	corner(n);
	sink++;
}

int main(int argc, char **argv)
{
	(void)argv;
	polygon((unsigned)argc);
	printf("%u\n", sink);
	return 0;
}
