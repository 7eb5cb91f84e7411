/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - C++ ways to call: virtual functions through two bases (thunks), std::function, a cheap
 * comparator in std::sort, a std::map, std::thread with a lambda.
 */
#include <algorithm>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "work.h"

struct shape {
	virtual ~shape() = default;
	virtual uint64_t area(uint64_t n) = 0;
};

struct printable {
	virtual ~printable() = default;
	virtual uint64_t print(uint64_t n) = 0;
};

struct square final : shape, printable {
	uint64_t side = 3;
	KEEP uint64_t area(uint64_t n) override
	{
		spin();
		NO_TAIL_CALL;
		return side * n;
	}
	KEEP uint64_t print(uint64_t n) override
	{
		uint64_t x = area(n);

		NO_TAIL_CALL;
		return x + side;
	}
};

KEEP static void call_virtual(printable *thing, shape *other)
{
	work_sink += thing->print(2);
	work_sink += other->area(1);
}

KEEP static void in_lambda(const std::vector<int> &numbers)
{
	spin();
	work_sink += numbers.size();
}

KEEP static void call_function(const std::function<void(int)> &function)
{
	function(3);
	NO_TAIL_CALL;
}

KEEP static bool less(int a, int b)
{
	return a < b;
}

KEEP static void sort_numbers(std::vector<int> &numbers)
{
	for (size_t i = 0; i < numbers.size(); i++)
		numbers[i] = (int)(i * 2654435761u >> 3);
	std::sort(numbers.begin(), numbers.end(), less);
}

KEEP static void fill_map()
{
	std::map<int, std::vector<int>> map;

	for (unsigned i = 0; i < 300; i++)
		map[(int)(i * 2654435761u >> 5)].resize(i % 7);
	work_sink += map.size();
}

KEEP static void in_thread()
{
	for (int i = 0; i < 3; i++)
		spin();
	NO_TAIL_CALL;
}

int main(int argc, char **argv)
{
	std::vector<int> numbers(3000);
	square thing;

	work_begin(argc, argv);
	while (!over()) {
		call_virtual(&thing, &thing);
		call_function([&](int) {
			in_lambda(numbers);
			NO_TAIL_CALL;
		});
		sort_numbers(numbers);
		fill_map();
		std::thread([] {
			in_thread();
			NO_TAIL_CALL;
		}).join();
	}
	return 0;
}
