/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames - frames of unusual shape: 1 MB of locals, variable length, alloca in a loop, realigned
 * (also together with a variable length, where gcc keeps the caller's stack pointer in another
 * register: DRAP), many arguments on the stack, a call that does not return as the last
 * instruction, a part split off as cold.
 */
#include <alloca.h>
#include <setjmp.h>

#include "work.h"

static jmp_buf back;
static volatile int never;

KEEP static void use(volatile char *bytes, size_t len)
{
	bytes[0] = 1;
	bytes[len - 1] = 1;
	work_sink += len;
}

KEEP static void large_inner(void)
{
	char local[1 << 20];

	use(local, sizeof(local));
	spin();
	use(local, sizeof(local));
}

KEEP static void large(void)
{
	char local[(1 << 20) + 4000];

	use(local, sizeof(local));
	large_inner();
	use(local, sizeof(local));
}

KEEP static void variable_inner(size_t len)
{
	char local[len];

	use(local, len);
	spin();
	use(local, len);
}

KEEP static void variable(size_t len)
{
	for (size_t i = 1; i < 4; i++) {
		char *local = alloca(len * i);

		use(local, len * i);
		variable_inner(len * i);
		use(local, len * i);
	}
}

KEEP static void realigned_inner(void)
{
	_Alignas(64) char local[128];

	use(local, sizeof(local));
	spin();
	use(local, sizeof(local));
}

KEEP static void realigned_variable(size_t len)
{
	_Alignas(64) char local[128];
	char more[len];

	use(local, sizeof(local));
	use(more, len);
	realigned_inner();
	use(more, len);
	use(local, sizeof(local));
}

KEEP static void realigned(size_t len)
{
	_Alignas(4096) char local[256];

	use(local, sizeof(local));
	realigned_variable(len);
	use(local, sizeof(local));
}

KEEP static uint64_t many_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
				    uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j)
{
	spin();
	NO_TAIL_CALL;
	return a + b + c + d + e + f + g + h + i + j;
}

KEEP static void pushes_arguments(uint64_t a)
{
	work_sink += many_arguments(a, a, a, a, a, a, a, a, a, a);
}

KEEP __attribute__((noreturn)) static void does_not_return(void)
{
	spin();
	longjmp(back, 1);
}

/* Its last instruction is a call: the return address is behind its end. */
KEEP __attribute__((noreturn)) static void ends_in_call(void)
{
	does_not_return();
}

KEEP static void jumps_back(void)
{
	if (!setjmp(back))
		ends_in_call();
	NO_TAIL_CALL;
}

KEEP __attribute__((cold)) static int unlikely_work(int x)
{
	spin();
	NO_TAIL_CALL;
	return x;
}

/* gcc moves the unlikely half to another section. */
KEEP static int split(int x)
{
	char local[200];

	if (__builtin_expect(x > 0, 0)) {
		use(local, sizeof(local));
		x = unlikely_work(x);
		use(local, sizeof(local));
		return x + never;
	}
	return x + 1;
}

int main(int argc, char **argv)
{
	work_begin(argc, argv);
	while (!over()) {
		large();
		variable(1000 + (size_t)argc);
		realigned(900 + (size_t)argc);
		pushes_arguments((uint64_t)argc);
		jumps_back();
		work_sink += (unsigned)split(argc);
	}
	return 0;
}
