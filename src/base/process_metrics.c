/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_metrics.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"

static int64_t started_at_ns;

struct memory {
	uint64_t virtual_bytes, resident_bytes;
};

static struct memory memory_now(void)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file) {
		if (fscanf(file, "%llu %llu", &total, &resident) != 2)
			total = resident = 0;
		fclose(file);
	}
	return (struct memory){ .virtual_bytes = total * page_bytes,
				.resident_bytes = resident * page_bytes };
}

uint64_t process_metrics_resident_bytes(void)
{
	return memory_now().resident_bytes;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return 0;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Open files; 0 where /proc cannot be read. */
static int64_t open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int64_t count = 0;

	if (!folder)
		return 0;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 3; /* ".", ".." and the folder itself */
}

static void add(struct strbuf *out, const char *name, const char *type, const char *help,
		double value)
{
	metrics_add_family(out, name, type, help);
	strbuf_addf(out, "%s %.16g\n", name, value);
}

static void render(void *context, struct strbuf *out)
{
	struct memory memory = memory_now();
	struct rlimit files = { 0 };

	(void)context;
	getrlimit(RLIMIT_NOFILE, &files);
	add(out, "process_cpu_seconds_total", "counter", "CPU time in user and kernel mode.",
	    cpu_seconds());
	add(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
	    (double)memory.resident_bytes);
	add(out, "process_virtual_memory_bytes", "gauge", "Reserved address space.",
	    (double)memory.virtual_bytes);
	add(out, "process_open_fds", "gauge", "Open files.", (double)open_files());
	add(out, "process_max_fds", "gauge", "How many files may be open.", (double)files.rlim_cur);
	add(out, "process_start_time_seconds", "gauge", "When it started, since the epoch.",
	    (double)started_at_ns * 1e-9);
	metrics_add_family(out, "firn_build_info", "gauge",
			   "Always 1; the labels say which build.");
	strbuf_add_text(out, "firn_build_info{version=\"" FIRN_VERSION "\"} 1\n");
}

static void add_collector(void)
{
	static struct metric_collector collector = { .render = render };

	started_at_ns = clock_real_ns();
	metrics_add_collector(&collector);
}

void process_metrics_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, add_collector);
}
