/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair - what each of its functions costs follows from a seed; in window 1 some cost more or less
 * than in window 0, but for every third seed, where nothing changes. Usage: pair SEED WINDOW CPU-MS
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define FUNCTIONS 12

static volatile uint64_t sink;
static unsigned cost[FUNCTIONS];

#define WORK(n)                                                                                    \
	__attribute__((noinline)) static void work_##n(unsigned rounds)                            \
	{                                                                                          \
		for (unsigned i = 0; i < rounds; i++)                                              \
			sink = sink * 6364136223846793005ull + n;                                  \
	}
WORK(0)
WORK(1)
WORK(2) WORK(3) WORK(4) WORK(5) WORK(6) WORK(7) WORK(8) WORK(9) WORK(10) WORK(11)

	static void (*const works[FUNCTIONS])(unsigned) = {
		work_0, work_1, work_2, work_3, work_4,	 work_5,
		work_6, work_7, work_8, work_9, work_10, work_11,
	};

__attribute__((noinline)) static void read_input(void)
{
	for (int i = 0; i < FUNCTIONS / 2; i++)
		works[i](cost[i]);
	sink++;
}

__attribute__((noinline)) static void write_output(void)
{
	for (int i = FUNCTIONS / 2; i < FUNCTIONS; i++)
		works[i](cost[i]);
	sink++;
}

int main(int count, char **words)
{
	unsigned seed = count > 1 ? atoi(words[1]) : 0;
	unsigned window = count > 2 ? atoi(words[2]) : 0;

	srand(seed + 1);
	for (int i = 0; i < FUNCTIONS; i++) {
		unsigned factor = rand() % 8;

		cost[i] = rand() % 3 ? 200 << rand() % 6 : 0;
		/* Every third program is the same in both windows. */
		if (window && seed % 3)
			cost[i] = factor == 0	? 2 * cost[i] + 400
				  : factor == 1 ? cost[i] / 3
						: cost[i];
	}
	while (clock() < (count > 3 ? atoi(words[3]) : 400) * (CLOCKS_PER_SEC / 1000)) {
		read_input();
		write_output();
	}
	return 0;
}
