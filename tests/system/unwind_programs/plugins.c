/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins - loads libplug_a.so, has it call leaf_a here, unloads it, and the same with libplug_b.so
 * and leaf_b. Both have the same layout and land at the same addresses (the program ends with 3
 * when they mostly do not), but their frames differ: leaf_a is only ever below a_inner below
 * a_outer.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "work.h"

KEEP static void leaf_a(void)
{
	work_rounds(600000);
	NO_TAIL_CALL;
}

KEEP static void leaf_b(void)
{
	work_rounds(600000);
	NO_TAIL_CALL;
}

static void *outer_of(void *plugin, const char *symbol)
{
	void *found = dlsym(plugin, symbol);

	if (!found)
		exit(2);
	return found;
}

KEEP static void *use_plugin(const char *path, const char *symbol, void (*leaf)(void))
{
	void *plugin = dlopen(path, RTLD_NOW), *outer;

	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	outer = outer_of(plugin, symbol);
	((void (*)(void (*)(void)))outer)(leaf);
	dlclose(plugin);
	return outer;
}

int main(int argc, char **argv)
{
	char a[4096], b[4096];
	int same = 0, rounds = 0;

	snprintf(a, sizeof(a), "%.*s/libplug_a.so", (int)(strrchr(argv[0], '/') - argv[0]),
		 argv[0]);
	snprintf(b, sizeof(b), "%.*s/libplug_b.so", (int)(strrchr(argv[0], '/') - argv[0]),
		 argv[0]);
	work_begin(argc, argv);
	for (; !over(); rounds++)
		same += use_plugin(a, "plug_outer", leaf_a) == use_plugin(b, "plug_outer", leaf_b);
	return same * 2 > rounds ? 0 : 3;
}
