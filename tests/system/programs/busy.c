/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy - a program whose time is known: heavy() three quarters, light() one quarter, both called
 * from serve() called from main(). Usage: busy SECONDS [PERCENT]
 *
 * It works PERCENT of the time (100) and sleeps in between: enough for who waits until an agent has
 * some samples of it, while others want the processor.
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

#define TURN_NS INT64_C(50000000)

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int64_t end_ns = now_ns() + (argc > 1 ? atoi(argv[1]) : 5) * INT64_C(1000000000);
	int64_t work_ns = TURN_NS / 100 * (argc > 2 ? atoi(argv[2]) : 100);
	const struct timespec pause = { .tv_nsec = TURN_NS - work_ns };

	while (now_ns() < end_ns) {
		int64_t turn_ns = now_ns();

		while (now_ns() < turn_ns + work_ns)
			serve();
		if (pause.tv_nsec > 0)
			nanosleep(&pause, NULL);
	}
	printf("%llu\n", (unsigned long long)sink);
	return 0;
}
