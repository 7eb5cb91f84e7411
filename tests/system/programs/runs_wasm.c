/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs_wasm IMAGE SECONDS [file] - runs what wasmtime compiled (the seed of the fuzz target
 * wasm_image, of which the first two bytes are not the image), as wasmtime keeps it in memory:
 * anonymous, or mapped from a file, as with code that was compiled before. So much CPU time is
 * spent in
 *
 *     main -> calls -> rec, eleven times -> leaf
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 4
#define TEXT_AT 0x1000
#define REC_AT 0x1040
#define PREFIX 2

typedef uint32_t rec_f(void *module, void *caller, uint32_t depth, uint32_t seed);

/* What the code reads of a module's instance: where its store and its memory are. */
static uint64_t memory[64], store[8];
static uint64_t instance[16] = { [1] = 0, [7] = 0 };

static char *image_of(const char *path, int is_mapped)
{
	static char bytes[PAGES * PAGE];
	char name[] = "/tmp/runs-wasm-XXXXXX";
	FILE *file = fopen(path, "rb");
	char *image;
	int fd;

	if (!file || fseek(file, PREFIX, SEEK_SET) || !fread(bytes, 1, sizeof(bytes), file))
		exit(2);
	fclose(file);
	if (is_mapped) {
		fd = mkstemp(name);
		if (fd < 0 || write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
			exit(2);
		image = mmap(NULL, sizeof(bytes), PROT_READ, MAP_PRIVATE, fd, 0);
		unlink(name);
	} else {
		image = mmap(NULL, sizeof(bytes), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (image == MAP_FAILED)
		exit(2);
	if (!is_mapped) {
		memcpy(image, bytes, sizeof(bytes));
		mprotect(image, sizeof(bytes), PROT_READ);
	}
	mprotect(image + TEXT_AT, PAGE, PROT_READ | PROT_EXEC);
	return image;
}

__attribute__((noinline)) static uint32_t calls(rec_f *rec, double seconds)
{
	uint32_t sum = 0;

	while (clock() < (clock_t)(seconds * CLOCKS_PER_SEC))
		sum += rec(instance, instance, 10, sum);
	return sum;
}

int main(int argc, char **argv)
{
	char *image;

	if (argc < 3)
		return 2;
	image = image_of(argv[1], argc > 3);
	instance[1] = (uint64_t)(uintptr_t)store;
	instance[7] = (uint64_t)(uintptr_t)memory;
	printf("%u\n", calls((rec_f *)(void *)(image + REC_AT), atof(argv[2])));
	return 0;
}
