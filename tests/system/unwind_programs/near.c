/* SPDX-License-Identifier: Apache-2.0 */
/* near - libnear.so for plt.c: functions without a frame. */
#include <stdint.h>

uint64_t near_one(uint64_t x);
uint64_t near_two(uint64_t x);
uint64_t near_three(uint64_t x);

uint64_t near_one(uint64_t x)
{
	return x + 1;
}

uint64_t near_two(uint64_t x)
{
	return x * 2;
}

uint64_t near_three(uint64_t x)
{
	return x ^ 3;
}
