/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions - throws through functions with clean-ups, caught in the outermost: main, catches,
 * passes_on, cleans_up, throws; the unwinder of libgcc runs below throws and below cleans_up, whose
 * destructor works during the unwinding.
 */
#include <stdexcept>
#include <string>

#include "work.h"

KEEP static void destructor_work()
{
	work_rounds(3000);
	NO_TAIL_CALL;
}

struct guard {
	std::string name = "a string that is too long for the small buffer";
	~guard()
	{
		destructor_work();
	}
};

KEEP static void throws(int n)
{
	work_rounds(3000);
	throw std::runtime_error(std::to_string(n));
}

KEEP static void cleans_up(int n)
{
	guard here;

	throws(n);
	work_sink += here.name.size();
}

KEEP static void passes_on(int n)
{
	try {
		cleans_up(n);
	} catch (const std::logic_error &) {
		work_sink += 7;
	}
	NO_TAIL_CALL;
}

KEEP static void catches(int n)
{
	try {
		passes_on(n);
	} catch (const std::exception &error) {
		work_sink += (unsigned char)error.what()[0];
	}
}

int main(int argc, char **argv)
{
	work_begin(argc, argv);
	while (!over())
		for (int i = 0; i < 50; i++)
			catches(i);
	return 0;
}
