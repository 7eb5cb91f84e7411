/* SPDX-License-Identifier: Apache-2.0 */
/* near - libnear.so for plt.c: functions without a frame. */
#include <stdint.h>

uint64_t near_one(uint64_t x);
uint64_t near_two(uint64_t x);
uint64_t near_three(uint64_t x);

/* As long as takes to be sampled on any processor, and so short that the stubs are, too. */
static inline uint64_t mix(uint64_t x)
{
	for (int i = 0; i < 4; i++)
		x = (x ^ x >> 7) * 31;
	return x;
}

uint64_t near_one(uint64_t x)
{
	return mix(x) + 1;
}

uint64_t near_two(uint64_t x)
{
	return mix(x) * 2;
}

uint64_t near_three(uint64_t x)
{
	return mix(x) ^ 3;
}
