/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images - burns CPU time in burn_c <- burn_b <- burn_a, in processes that are hard to look at.
 *
 *   images burn MS                 just so
 *   images spawn N MS              N children one after the other, each `images burn MS`
 *   images vspawn N MS             the same by vfork
 *   images fork N MS               N children that do not call exec
 *   images deleted MS              removes its own file first
 *   images memfd MS                runs itself from a memory file
 *   images plugins A.so B.so MS    loads, calls work(MS) and unloads one after the other, 3 times
 *   images moved MS                its code has been copied to anonymous memory, in place
 *   images thread MS               the main thread ends, another goes on
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define MOVED __attribute__((noinline, noclone, section(".text.moved"), aligned(4096)))
#define MOVED_BYTES 4096

static volatile unsigned long sink;

static long cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

NOINLINE void burn_c(long ms);
NOINLINE void burn_b(long ms);
NOINLINE void burn_a(long ms);
MOVED void burn_moved(unsigned long rounds);

void burn_c(long ms)
{
	long end = cpu_ms() + ms;

	while (cpu_ms() < end)
		for (unsigned long i = 0; i < 50000; i++)
			sink += i ^ sink;
}

void burn_b(long ms)
{
	burn_c(ms);
	sink++;
}

void burn_a(long ms)
{
	burn_b(ms);
	sink++;
}

/* Refers to nothing outside of itself, and fills its page as far as anyone else is concerned. */
MOVED void burn_moved(unsigned long rounds)
{
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
}

MOVED void after_moved(void);
MOVED void after_moved(void)
{
	sink++;
}

static void spawn(char *self, long count, char *ms, int by_vfork)
{
	for (long i = 0; i < count; i++) {
		pid_t pid = by_vfork ? vfork() : fork();

		if (!pid) {
			execl(self, self, "burn", ms, (char *)NULL);
			_exit(127);
		}
		waitpid(pid, NULL, 0);
	}
}

static void forks(long count, long ms)
{
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			burn_a(ms);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static int run_from_memory(char *ms)
{
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int memory = memfd_create("images-in-memory", MFD_CLOEXEC);
	char *arguments[] = { "images", "burn", ms, NULL }, *environment[] = { NULL };
	struct stat stat;

	if (self < 0 || memory < 0 || fstat(self, &stat))
		return 1;
	for (off_t left = stat.st_size; left > 0;) {
		ssize_t len = sendfile(memory, self, NULL, (size_t)left);

		if (len <= 0)
			return 1;
		left -= len;
	}
	fexecve(memory, arguments, environment);
	return 1;
}

static int plugins(char **paths, long ms)
{
	for (int i = 0; i < 6; i++) {
		void *plugin = dlopen(paths[i % 2], RTLD_NOW);
		void (*work)(long) = plugin ? (void (*)(long))dlsym(plugin, "work") : NULL;

		if (!work)
			return 1;
		fprintf(stderr, "%p\n", (void *)work);
		work(ms);
		dlclose(plugin);
	}
	return 0;
}

static int moved(long ms)
{
	char *code = (char *)(uintptr_t)burn_moved;
	static char copy[MOVED_BYTES];
	long end = cpu_ms() + ms;

	memcpy(copy, code, sizeof(copy));
	if (mmap(code, sizeof(copy), PROT_READ | PROT_WRITE | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != code)
		return 1;
	memcpy(code, copy, sizeof(copy));
	while (cpu_ms() < end)
		burn_moved(1000000);
	after_moved();
	return 0;
}

static void *run_thread(void *ms)
{
	burn_a((long)ms);
	exit(0);
}

static int thread(long ms)
{
	pthread_t id;

	if (pthread_create(&id, NULL, run_thread, (void *)ms))
		return 1;
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "burn"))
		burn_a(atol(argv[2]));
	else if (!strcmp(what, "spawn") && argc > 3)
		spawn(argv[0], atol(argv[2]), argv[3], 0);
	else if (!strcmp(what, "vspawn") && argc > 3)
		spawn(argv[0], atol(argv[2]), argv[3], 1);
	else if (!strcmp(what, "fork") && argc > 3)
		forks(atol(argv[2]), atol(argv[3]));
	else if (!strcmp(what, "memfd"))
		return run_from_memory(argv[2]);
	else if (!strcmp(what, "deleted") && !unlink(argv[0]))
		burn_a(atol(argv[2]));
	else if (!strcmp(what, "plugins") && argc > 4)
		return plugins(argv + 2, atol(argv[4]));
	else if (!strcmp(what, "moved"))
		return moved(atol(argv[2]));
	else if (!strcmp(what, "thread"))
		return thread(atol(argv[2]));
	else
		return 2;
	return 0;
}
