/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named SERVICE SECONDS - says by OpenTelemetry's process context (OTEP 4719) that it is SERVICE,
 * and works a tenth of the time or so, as does its thread "helper". SIGUSR1: it is "SERVICE-2" from
 * then on.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t renamed;

static void on_signal(int number)
{
	(void)number;
	renamed = 1;
}

static size_t put(uint8_t *to, uint8_t field, const void *bytes, size_t len)
{
	to[0] = (uint8_t)(field << 3 | 2);
	to[1] = (uint8_t)len;
	memcpy(to + 2, bytes, len);
	return len + 2;
}

static size_t put_attribute(uint8_t *to, const char *key, const char *value)
{
	uint8_t any[128], pair[256];
	size_t len = put(pair, 1, key, strlen(key));

	len += put(pair + len, 2, any, put(any, 1, value, strlen(value)));
	return put(to, 1, pair, len);
}

static void publish(uint8_t *header, const char *service)
{
	uint8_t *payload = malloc(512), resource[256];
	uint64_t published = 0, address = (uintptr_t)payload;
	uint32_t version = 2, bytes;
	struct timespec now;
	size_t len = put_attribute(resource, "service.name", service);

	len += put_attribute(resource + len, "service.version", "1.2.3");
	bytes = (uint32_t)put(payload, 1, resource, len);
	memcpy(header + 16, &published, 8);
	__sync_synchronize();
	memcpy(header, "OTEL_CTX", 8);
	memcpy(header + 8, &version, 4);
	memcpy(header + 12, &bytes, 4);
	memcpy(header + 24, &address, 8);
	clock_gettime(CLOCK_MONOTONIC, &now);
	published = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	__sync_synchronize();
	memcpy(header + 16, &published, 8);
}

static void work_and_sleep(void)
{
	const struct timespec pause = { .tv_nsec = 20000000 };

	for (volatile int i = 0; i < 1000000; i++)
		continue;
	nanosleep(&pause, NULL);
}

static void *help(void *data)
{
	for (;;)
		work_and_sleep();
	return data;
}

int main(int argc, char **argv)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 10);
	pthread_t helper;
	char second[64];
	uint8_t *header;

	if (argc < 3 || fd < 0 || ftruncate(fd, 4096))
		return 1;
	header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (header == MAP_FAILED)
		return 1;
	signal(SIGUSR1, on_signal);
	if (pthread_create(&helper, NULL, help, NULL))
		return 1;
	pthread_setname_np(helper, "helper");
	snprintf(second, sizeof(second), "%s-2", argv[1]);
	publish(header, argv[1]);
	while (time(NULL) < end) {
		work_and_sleep();
		if (renamed == 1) {
			renamed = 2;
			publish(header, second);
		}
	}
	return 0;
}
