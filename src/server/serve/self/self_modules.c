/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/self/self_modules.h"

#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/resolve/read/debug_files.h"
#include "server/resolve/sources/symbol_sources.h"

#define SELF_EXE "/proc/self/exe"

static bool is_vdso(const char *name)
{
	return !strncmp(name, "linux-vdso", 10) || !strncmp(name, "linux-gate", 10);
}

/* The executable has no name in the list of loaded objects. */
static void set_name(struct self_module *module, const char *name)
{
	ssize_t len;

	if (name && *name) {
		snprintf(module->name, sizeof(module->name), "%s", is_vdso(name) ? "[vdso]" : name);
		return;
	}
	len = readlink(SELF_EXE, module->name, sizeof(module->name) - 1);
	if (len < 0)
		snprintf(module->name, sizeof(module->name), "%s", SELF_EXE);
	else
		module->name[len] = 0;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct self_modules *modules = context;
	struct self_module *module = &modules->items[modules->count];

	(void)size;
	if (modules->count == SELF_MODULES_MAX)
		return 1;
	*module = (struct self_module){ .bias = info->dlpi_addr, .low = UINTPTR_MAX };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t high = low + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		module->low = low < module->low ? low : module->low;
		module->high = high > module->high ? high : module->high;
	}
	if (module->low < module->high) {
		set_name(module, info->dlpi_name);
		modules->count++;
	}
	return 0;
}

struct self_modules *self_modules_new(void)
{
	struct self_modules *modules = mem_new(struct self_modules);

	dl_iterate_phdr(add_module, modules);
	return modules;
}

void self_modules_free(struct self_modules *modules)
{
	if (!modules)
		return;
	for (size_t i = 0; i < modules->count; i++) {
		symbol_texts_free(modules->items[i].texts);
		symbol_table_free(modules->items[i].table);
	}
	free(modules);
}

/* Without a file there are addresses only: the profile is still of use. */
static void read_symbols(struct self_module *module, bool is_executable)
{
	const char *path = is_executable ? SELF_EXE : module->name;
	struct symbol_sources sources = { .count = 0 };
	struct err err = { 0 };
	int fd, status;

	module->tried = true;
	if (!strcmp(module->name, "[vdso]"))
		return;
	fd = debug_files_open(path, &err);
	status = fd;
	if (fd >= 0) {
		symbol_sources_add(&sources, fd, slice_of(module->name));
		status = symbol_sources_table(&sources, NULL, &module->table, &err);
		symbol_sources_close(&sources);
	}
	if (status < 0) {
		log_warn("self_profile", "no symbols", "file=\"%s\" cause=\"%s\"", path,
			 err.message);
		return;
	}
	module->texts = symbol_texts_new(module->table);
	snprintf(module->build_id, sizeof(module->build_id), "%s", module->table->info.build_id);
}

struct self_module *self_modules_find(struct self_modules *modules, uintptr_t address)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct self_module *module = &modules->items[i];

		if (address < module->low || address >= module->high)
			continue;
		if (!module->tried)
			read_symbols(module, i == 0);
		return module;
	}
	return NULL;
}
