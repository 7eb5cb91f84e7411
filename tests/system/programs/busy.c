/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy - a program whose time is known: heavy() three quarters, light() one quarter, both called
 * from serve() called from main(). Usage: busy SECONDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile uint64_t sink;

__attribute__((noinline)) static void spin(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		sink = sink * 6364136223846793005ull + 1442695040888963407ull;
}

__attribute__((noinline)) static void heavy(uint64_t rounds)
{
	spin(3 * rounds);
	sink++;
}

__attribute__((noinline)) static void light(uint64_t rounds)
{
	spin(rounds);
	sink++;
}

__attribute__((noinline)) static void serve(void)
{
	heavy(10000);
	light(10000);
	sink++;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);

	while (time(NULL) < end)
		serve();
	printf("%llu\n", (unsigned long long)sink);
	return 0;
}
