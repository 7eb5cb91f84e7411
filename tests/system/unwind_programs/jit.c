/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit - code made at run time, in no file, that keeps frame pointers as JIT compilers do, between
 * functions without frame pointers: main, run_generated, [anon], back_again, spin.
 */
#include <string.h>
#include <sys/mman.h>

#include "work.h"

KEEP static void back_again(void)
{
	char local[120];

	__asm__ volatile("" ::"r"(local) : "memory");
	spin();
	__asm__ volatile("" ::"r"(local) : "memory");
}

KEEP static void run_generated(void (*code)(void (*)(void)))
{
	char local[72];

	__asm__ volatile("" ::"r"(local) : "memory");
	code(back_again);
	__asm__ volatile("" ::"r"(local) : "memory");
}

int main(int argc, char **argv)
{
	/* push rbp; mov rbp,rsp; sub rsp,32; call rdi; mov ecx,2000000; loop .; leave; ret */
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec,
					      0x20, 0xff, 0xd7, 0xb9, 0x80, 0x84, 0x1e,
					      0x00, 0xe2, 0xfe, 0xc9, 0xc3 };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	work_begin(argc, argv);
	while (!over())
		run_generated((void (*)(void (*)(void)))page);
	return 0;
}
