/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay - runs one fuzz target over its corpus in the ordinary test run.
 *
 *     NAME_fuzz DIRECTORY
 *
 * Every file goes through the target as it is, then in MUTANTS damaged forms: cut short, with
 * bits flipped, bytes overwritten by values that sit at the edges of length fields, or pieces
 * repeated. The damage depends on the input alone, so a failure comes back on the next run. The
 * target fails by crashing; the file being tried is named on stderr when that happens.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if BUILT_WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#define MUTANTS 256
#define INPUT_BYTES_MAX ((size_t)16 << 20)
#define DAMAGES_MAX 4 /* per mutant */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char current[4200]; /* what is being tried, for the signal handler */

static void name_current(void)
{
	static const char text[] = "\ncrashed on ";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)!write(STDERR_FILENO, current, strlen(current));
	(void)!write(STDERR_FILENO, "\n", 1);
}

static void on_crash(int number)
{
	name_current();
	signal(number, SIG_DFL);
	raise(number);
}

/* A sanitizer reports memory faults itself, and better; it is only asked to call us as well. */
static void name_current_on_crash(void)
{
#if BUILT_WITH_ASAN
	__sanitizer_set_death_callback(name_current);
#else
	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGFPE, on_crash);
	signal(SIGILL, on_crash);
#endif
	signal(SIGABRT, on_crash);
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016. */
static uint64_t next_number(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static size_t damage(uint8_t *bytes, size_t size, uint64_t *state)
{
	static const uint8_t edges[] = { 0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff };
	size_t at = size ? next_number(state) % size : 0;
	size_t len = size ? next_number(state) % (size - at) : 0;

	if (!size)
		return size;
	switch (next_number(state) % 5) {
	case 0:
		return at;
	case 1:
		bytes[at] ^= (uint8_t)(1u << (next_number(state) % 8));
		return size;
	case 2:
		bytes[at] = edges[next_number(state) % sizeof(edges)];
		return size;
	case 3:
		memset(bytes + at, 0xff, len > 10 ? 10 : len);
		return size;
	default:
		memmove(bytes + next_number(state) % (size - len), bytes + at, len);
		return size;
	}
}

/* A copy in a heap block of exactly its size, so that a sanitizer sees the first byte past it. */
static void try(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void try_with_mutants(const char *path, const uint8_t *bytes, size_t size)
{
	uint8_t *mutant = malloc(size ? size : 1);
	uint64_t state = 0x9e3779b97f4a7c15ull ^ size;

	if (!mutant)
		abort();
	snprintf(current, sizeof(current), "%s", path);
	try(bytes, size);
	for (int i = 0; i < MUTANTS; i++) {
		size_t mutant_size = size;

		snprintf(current, sizeof(current), "%s, mutant %d", path, i);
		if (size)
			memcpy(mutant, bytes, size);
		for (uint64_t left = 1 + next_number(&state) % DAMAGES_MAX; left; left--)
			mutant_size = damage(mutant, mutant_size, &state);
		try(mutant, mutant_size);
	}
	free(mutant);
}

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc(INPUT_BYTES_MAX);
	size_t size;

	if (!file || !bytes) {
		fprintf(stderr, "open \"%s\": %s\n", path, strerror(errno));
		return -1;
	}
	size = fread(bytes, 1, INPUT_BYTES_MAX, file);
	fclose(file);
	try_with_mutants(path, bytes, size);
	free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int inputs = 0;

	if (!directory) {
		fprintf(stderr, "usage: %s DIRECTORY (with at least one input in it)\n", argv[0]);
		return 2;
	}
	name_current_on_crash();
	snprintf(current, sizeof(current), "the empty input");
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	while ((entry = readdir(directory))) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (replay_file(path))
			return 1;
		inputs++;
	}
	closedir(directory);
	printf("replayed %d inputs, each with %d mutants\n", inputs, MUTANTS);
	if (!inputs)
		fprintf(stderr, "no inputs in \"%s\": a target needs seeds\n", argv[1]);
	return inputs ? 0 : 1;
}
