/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_symbols - names of kernel addresses: of the kernel's own code and its modules from
 * /proc/kallsyms, of loaded BPF programs from the kernel's list of them (bpf/sample.bpf.c).
 *
 * When the kernel hides addresses (kernel.kptr_restrict) the table is empty and says why; lookups
 * then give the mapping only. A reading of /proc/kallsyms takes a tenth of a second, so it is read
 * again, at most once a minute, when an address was not found, or when modules have changed and one
 * of their addresses is looked up. BPF programs come and go with each service that systemd starts:
 * they are listed anew once in each window in which code that was loaded is looked up. Owned by the
 * drain thread.
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

/* Appends a struct program_code for all code of loaded BPF programs; false = not known. */
typedef bool kernel_symbols_list_f(void *context, struct strbuf *ret);

struct kernel_symbols {
	struct kernel_symbol *items; /* by address, one per address */
	size_t count;
	struct strbuf text;
	uint64_t text_address; /* of `_text`, where the kernel begins; 0 = not known */
	uint64_t modules_hash; /* of /proc/modules */
	int64_t checked_at_ns; /* monotonic */
	int64_t wait_ns;       /* until the next check */
	bool missed;	       /* an address was not found since the last reading */
	/* Where modules have their names now, if they have changed since; borrowed. */
	const struct kernel_symbol_files *changed;

	struct strbuf programs; /* struct program_code, by address */
	struct strbuf before;	/* ... of the list before: some may have gone since a sample */
	bool has_programs;	/* the kernel tells of them: their names are not in `items` */
	kernel_symbols_list_f *list_programs; /* NULL = they are listed for this window */
	void *list_context;
};

#define KERNEL_SYMBOL_FILES_NONE ((struct kernel_symbol_files){ -1, -1 })

void kernel_symbols_open(struct kernel_symbol_files *ret);
void kernel_symbols_close(struct kernel_symbol_files *files);

/* `path` is /proc/kallsyms (tests give their own). */
int kernel_symbols_read(struct kernel_symbols *symbols, const char *path, struct err *err);
void kernel_symbols_free(struct kernel_symbols *symbols);

/* A hash of the names, sizes and addresses in /proc/modules or a file like it; 0 without any. */
uint64_t kernel_symbols_hash_modules(const char *path);

/*
 * At the beginning of a window. Reads /proc/kallsyms again if that is due, or notes that modules
 * have changed. Failures keep the old table. kernel_symbols_find uses `files`, `list_programs` and
 * its context, too, until the next refresh.
 */
void kernel_symbols_refresh(struct kernel_symbols *symbols, const struct kernel_symbol_files *files,
			    kernel_symbols_list_f *list_programs, void *context, int64_t now_ns);

/*
 * The function that holds the address; *ret_module is empty for the kernel itself. Slices live
 * until the next reading. False when it is not known.
 */
bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, struct slice *ret_name,
			 struct slice *ret_module);

#endif
