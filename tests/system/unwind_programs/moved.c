/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moved - loads libplug_a.so, and moves its code to another place of the same size each time before
 * it has it call leaf_a here.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "work.h"

KEEP static void leaf_a(void)
{
	work_rounds(600000);
	NO_TAIL_CALL;
}

/* The mapping around an address. */
static size_t find_mapping(uintptr_t address, uintptr_t *ret_start)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t start, end;
	char line[4096];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2 || address < start ||
		    address >= end)
			continue;
		fclose(maps);
		*ret_start = start;
		return end - start;
	}
	exit(2);
}

static uintptr_t reserve(size_t bytes)
{
	void *place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		exit(2);
	return (uintptr_t)place;
}

KEEP static void use_moved(uintptr_t outer)
{
	((void (*)(void (*)(void)))outer)(leaf_a);
	NO_TAIL_CALL;
}

int main(int argc, char **argv)
{
	uintptr_t outer, start, places[2];
	char path[4096];
	size_t bytes;
	void *plugin;

	snprintf(path, sizeof(path), "%.*s/libplug_a.so", (int)(strrchr(argv[0], '/') - argv[0]),
		 argv[0]);
	plugin = dlopen(path, RTLD_NOW);
	outer = plugin ? (uintptr_t)dlsym(plugin, "plug_outer") : 0;
	if (!outer)
		exit(2);
	bytes = find_mapping(outer, &start);
	places[0] = reserve(bytes);
	places[1] = reserve(bytes);
	work_begin(argc, argv);
	for (int i = 0; !over(); i++) {
		uintptr_t to = places[i % 2];

		if (mremap((void *)start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
			   (void *)to) != (void *)to)
			exit(3);
		outer += to - start;
		start = to;
		use_moved(outer);
	}
	_exit(0); /* what is left of the plug-in cannot be taken down */
}
