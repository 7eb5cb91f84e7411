/* SPDX-License-Identifier: Apache-2.0 */
/* spawner - starts PROGRAM at RATE processes per second for SECONDS; prints how many it started. */
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define NS_PER_S 1000000000ll

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int main(int argc, char **argv)
{
	char *no_environment[] = { NULL };
	int64_t begin, count = 0, rate, total;

	if (argc < 4) {
		fprintf(stderr, "usage: spawner RATE SECONDS PROGRAM [ARG...]\n");
		return 2;
	}
	rate = atoll(argv[1]);
	total = rate * atoll(argv[2]);
	for (begin = now_ns(); count < total; count++) {
		int64_t ahead_ns = begin + count * NS_PER_S / rate - now_ns();
		struct timespec pause = { .tv_nsec = ahead_ns };
		pid_t child;
		int error;

		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (ahead_ns > 0)
			nanosleep(&pause, NULL);
		if (now_ns() - begin > atoll(argv[2]) * NS_PER_S)
			break;
		error = posix_spawn(&child, argv[3], NULL, NULL, argv + 3, no_environment);
		if (error) {
			errno = error;
			perror(argv[3]);
			return 1;
		}
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("%lld\n", (long long)count);
	return 0;
}
