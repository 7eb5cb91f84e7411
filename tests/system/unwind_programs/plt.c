/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plt - many calls of tiny functions of libnear.so, so that the stubs of the procedure linkage
 * table are sampled; with LD_BIND_NOT=1 each call goes through the dynamic linker's lazy resolution
 * too.
 */
#include "work.h"

uint64_t near_one(uint64_t x);
uint64_t near_two(uint64_t x);
uint64_t near_three(uint64_t x);

KEEP static void call_near(void)
{
	uint64_t x = 1;

	for (int i = 0; i < 2000; i++)
		x += near_one(x) + near_two(x) + near_three(x);
	work_sink += x;
}

int main(int argc, char **argv)
{
	work_begin(argc, argv);
	while (!over())
		call_near();
	return 0;
}
