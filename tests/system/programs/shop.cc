// SPDX-License-Identifier: Apache-2.0
// Uses a part of a CPU in a template's method with an inlined function in it. NAME makes builds
// differ. With an argument it removes that file, itself, first.
#include <cstdio>
#include <ctime>

namespace NAME
{

static volatile unsigned long sum;

static inline __attribute__((always_inline)) void weigh(unsigned long x)
{
	for (unsigned long i = 0; i < 1000; i++)
		sum = sum + (x ^ i);
}

template <typename T> struct cart {
	__attribute__((noinline)) void fill(T n)
	{
		for (T i = 0; i < n; i++)
			weigh(i);
	}
};

} // namespace NAME

int main(int argc, char **argv)
{
	const time_t end = time(nullptr) + 300;
	const timespec pause = { 0, 40000000 };
	NAME::cart<unsigned> cart;

	if (argc > 1)
		remove(argv[1]);
	while (time(nullptr) < end) {
		cart.fill(2000);
		nanosleep(&pause, nullptr);
	}
	return 0;
}
