/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a V8 that says nothing of its layout, for node_test: it exports V8's name of a
 * function, and spends its time in code that it makes itself, with a frame pointer. Arguments:
 * seconds of CPU time.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

const char *_ZN2v82V810GetVersionEv(void);

const char *_ZN2v82V810GetVersionEv(void)
{
	return "99.0";
}

/* push %rbp; mov %rsp,%rbp; mov $100000000,%ecx; again: dec %ecx; jne again; pop %rbp; ret */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0xe1, 0xf5,
				      0x05, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };

int main(int argc, char **argv)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	void (*spin)(void);

	if (page == MAP_FAILED)
		return 1;
	memcpy(page, code, sizeof(code));
	memcpy(&spin, &page, sizeof(spin));
	while ((double)clock() / CLOCKS_PER_SEC < seconds)
		spin();
	return 0;
}
