/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protects - two threads, each of which makes generated code writable and executable again, and
 * runs it, as often as its argument says: as V8 did before its code was always executable.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CODE_BYTES 65536

static const uint8_t code[] = { 0xc3 }; /* ret */

static void *generate(void *times)
{
	uint8_t *memory =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < *(int *)times; i++) {
		mprotect(memory, CODE_BYTES, PROT_READ | PROT_WRITE);
		memcpy(memory, code, sizeof(code));
		mprotect(memory, CODE_BYTES, PROT_READ | PROT_EXEC);
		((void (*)(void))(uintptr_t)memory)();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t other;

	pthread_create(&other, NULL, generate, &times);
	generate(&times);
	pthread_join(other, NULL);
}
