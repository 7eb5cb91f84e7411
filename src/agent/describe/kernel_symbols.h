/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_symbols - names of kernel addresses, from /proc/kallsyms: the kernel's own code, modules
 * and loaded BPF programs.
 *
 * When the kernel hides addresses (kernel.kptr_restrict) the table is empty and says why; lookups
 * then give the mapping only. Read again, at most once a minute, when an address was not found, or
 * when modules or BPF programs have changed and one of their addresses is looked up: systemd loads
 * programs with each service, and a reading takes a tenth of a second. Owned by the drain thread.
 */
#ifndef FIRN_AGENT_DESCRIBE_KERNEL_SYMBOLS_H
#define FIRN_AGENT_DESCRIBE_KERNEL_SYMBOLS_H

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"

#define KERNEL_SYMBOLS_MAX ((size_t)1 << 22)

struct kernel_symbol {
	uint64_t address;
	uint32_t name;	 /* offset into text, NUL-terminated */
	uint32_t module; /* the same; 0 = the kernel itself */
};

/* /proc/kallsyms and /proc/modules, opened by who may see addresses; -1 = cannot be had. */
struct kernel_symbol_files {
	int symbols, modules;
};

struct kernel_symbols {
	struct kernel_symbol *items; /* by address, one per address */
	size_t count;
	struct strbuf text;
	uint64_t text_address; /* of `_text`, where the kernel begins; 0 = not known */
	uint64_t code_hash;    /* of what was loaded */
	int64_t checked_at_ns; /* monotonic */
	int64_t wait_ns;       /* until the next check */
	bool missed;	       /* an address was not found since the last reading */
	/* Where what is loaded now has its names, if that has changed since; borrowed. */
	const struct kernel_symbol_files *changed;
};

#define KERNEL_SYMBOL_FILES_NONE ((struct kernel_symbol_files){ -1, -1 })

void kernel_symbols_open(struct kernel_symbol_files *ret);
void kernel_symbols_close(struct kernel_symbol_files *files);

/* `path` is /proc/kallsyms (tests give their own). */
int kernel_symbols_read(struct kernel_symbols *symbols, const char *path, struct err *err);
void kernel_symbols_free(struct kernel_symbols *symbols);

/* Of the names, sizes and addresses in /proc/modules, or a file like it; 0 where there are none. */
uint64_t kernel_symbols_hash_modules(const char *path);

/* Another number when BPF programs have come or gone; 0 = not known: missed addresses must tell. */
typedef uint64_t kernel_symbols_hash_f(void *context);

/*
 * Reads /proc/kallsyms again if that is due, or notes that loaded code has changed. Failures keep
 * the old table. `files` is read by kernel_symbols_find, too, and stays open until then.
 */
void kernel_symbols_refresh(struct kernel_symbols *symbols, const struct kernel_symbol_files *files,
			    kernel_symbols_hash_f *programs, void *context, int64_t now_ns);

/*
 * The function that holds the address; *ret_module is empty for the kernel itself. Slices live
 * until the next reading. False when it is not known.
 */
bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, struct slice *ret_name,
			 struct slice *ret_module);

#endif
