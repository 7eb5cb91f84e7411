/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin - a program that burns a known amount of CPU in known functions, for the sampling tests.
 *
 *   spin chain MS          main -> spin_a -> spin_b -> spin_c, MS of CPU time
 *   spin split MS          a quarter in spin_small, the rest in spin_large
 *   spin forks N MS        N children one after the other, MS each, in spin_c
 *   spin threads N MS      N threads called "spinner-N", MS each, in spin_c
 *   spin deep FRAMES MS    recursion, FRAMES deep
 *   spin anonymous MS      code in anonymous memory
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define FUNCTION __attribute__((noinline))
#else
#define FUNCTION __attribute__((noinline, noclone))
#endif

static volatile unsigned long sink;

static long cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Nearly all of the time is in this loop; the clock is read rarely. */
#define BURN(ms)                                                                                   \
	do {                                                                                       \
		long end_ms_ = cpu_ms() + (ms);                                                    \
		while (cpu_ms() < end_ms_)                                                         \
			for (unsigned long i_ = 0; i_ < 400000; i_++)                              \
				sink += i_ ^ sink;                                                 \
	} while (0)

FUNCTION void spin_c(long ms);
FUNCTION void spin_b(long ms);
FUNCTION void spin_a(long ms);
FUNCTION void spin_small(long ms);
FUNCTION void spin_large(long ms);
FUNCTION long spin_deep(long frames, long ms);

void spin_c(long ms)
{
	BURN(ms);
	sink++;
}

void spin_b(long ms)
{
	spin_c(ms);
	sink++;
}

void spin_a(long ms)
{
	spin_b(ms);
	sink++;
}

void spin_small(long ms)
{
	BURN(ms);
	sink++;
}

void spin_large(long ms)
{
	BURN(ms);
	sink++;
}

long spin_deep(long frames, long ms)
{
	long depth;

	if (frames <= 1) {
		spin_c(ms);
		return 1;
	}
	depth = spin_deep(frames - 1, ms);
	sink++;
	return depth + 1;
}

FUNCTION static void spin_split(long ms)
{
	for (long left = ms / 40; left > 0; left--) {
		spin_small(10);
		spin_large(30);
	}
}

FUNCTION static void spin_forks(long count, long ms)
{
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			spin_c(ms);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

FUNCTION static void *spin_thread(void *ms)
{
	spin_c((long)ms);
	return NULL;
}

FUNCTION static void spin_threads(long count, long ms)
{
	pthread_t threads[16];

	for (long i = 0; i < count; i++) {
		char name[16];

		pthread_create(&threads[i], NULL, spin_thread, (void *)ms);
		snprintf(name, sizeof(name), "spinner-%ld", i);
		pthread_setname_np(threads[i], name);
	}
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rcx; 1: dec %rcx; jnz 1b; pop %rbp; ret */
FUNCTION static void spin_anonymous(long ms)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9,
					      0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3 };
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long end_ms = cpu_ms() + ms;

	if (memory == MAP_FAILED)
		exit(1);
	memcpy(memory, code, sizeof(code));
	while (cpu_ms() < end_ms)
		((void (*)(unsigned long))memory)(1000000);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	long first = argc > 2 ? atol(argv[2]) : 0, second = argc > 3 ? atol(argv[3]) : 0;

	if (!strcmp(what, "chain"))
		spin_a(first);
	else if (!strcmp(what, "split"))
		spin_split(first);
	else if (!strcmp(what, "forks"))
		spin_forks(first, second);
	else if (!strcmp(what, "threads") && first <= 16)
		spin_threads(first, second);
	else if (!strcmp(what, "deep"))
		spin_deep(first, second);
	else if (!strcmp(what, "anonymous"))
		spin_anonymous(first);
	else
		return 2;
	return 0;
}
