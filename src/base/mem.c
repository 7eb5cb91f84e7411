/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAPS_MAX 2
#define OWN_PAGES_FROM_BYTES (1 << 20) /* mapped for themselves, and unmapped when freed */

static void *or_die(void *memory, size_t count, size_t size)
{
	if (memory)
		return memory;
	fprintf(stderr, "firn: out of memory: the system refused %zu x %zu bytes\n", count, size);
	abort();
}

void *mem_calloc(size_t count, size_t size)
{
	return or_die(calloc(count ? count : 1, size ? size : 1), count, size);
}

void *mem_realloc(void *old, size_t count, size_t size)
{
	if (!count || !size)
		count = size = 1;
	return or_die(reallocarray(old, count, size), count, size);
}

char *mem_strndup(const char *text, size_t len)
{
	char *copy = or_die(len < SIZE_MAX ? malloc(len + 1) : NULL, len, 1);

	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

void mem_bound_heaps(void)
{
	mallopt(M_ARENA_MAX, HEAPS_MAX);
	mallopt(M_MMAP_THRESHOLD, OWN_PAGES_FROM_BYTES);
	mallopt(M_TRIM_THRESHOLD, OWN_PAGES_FROM_BYTES);
}

void mem_prefer_huge_pages(void *data, size_t bytes)
{
	uintptr_t first = ((uintptr_t)data + MEM_HUGE_PAGE_BYTES - 1) & ~(MEM_HUGE_PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)data + bytes) & ~(MEM_HUGE_PAGE_BYTES - 1);

	if (bytes >= MEM_HUGE_PAGE_BYTES && first < end)
		madvise((void *)first, end - first, MADV_HUGEPAGE);
}

void mem_populate(void *data, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t first = ((uintptr_t)data + page) & ~page;
	uintptr_t end = ((uintptr_t)data + bytes) & ~page;

	if (first < end)
		madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#else
	(void)data;
	(void)bytes;
#endif
}

void *mem_map_range(size_t bytes, int protection, int flags)
{
	size_t more = bytes >= MEM_HUGE_PAGE_BYTES ? MEM_HUGE_PAGE_BYTES : 0, before;
	char *range =
		mmap(NULL, bytes + more, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	char *first;

	if (range == MAP_FAILED)
		return NULL;
	before = more ? -(uintptr_t)range & (MEM_HUGE_PAGE_BYTES - 1) : 0;
	first = range + before;
	if (before < more)
		munmap(first + bytes, more - before);
	if (before)
		munmap(range, before);
	return first;
}

void *mem_map_pages(size_t bytes)
{
	void *data = or_die(mem_map_range(bytes, PROT_READ | PROT_WRITE, 0), bytes, 1);

	mem_prefer_huge_pages(data, bytes);
	return data;
}

void mem_unmap_pages(void *data, size_t bytes)
{
	if (data)
		munmap(data, bytes);
}

void mem_trim(void)
{
	malloc_trim(0);
}

struct mem_resident mem_resident(void)
{
	struct mallinfo2 heaps = mallinfo2();
	int64_t page_bytes = sysconf(_SC_PAGESIZE);
	long long total = 0, resident = 0, shared = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	int count = 0;

	if (file) {
		count = fscanf(file, "%lld %lld %lld", &total, &resident, &shared);
		fclose(file);
	}
	if (count != 3)
		return (struct mem_resident){ 0 };
	return (struct mem_resident){
		.unused_bytes =
			(resident - shared) * page_bytes - (int64_t)(heaps.uordblks + heaps.hblkhd),
		.mapped_bytes = shared * page_bytes,
	};
}
