/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self_modules - finds the file of this process that an address belongs to, and its symbols.
 *
 * A snapshot of the loaded objects; their symbol tables are built when first asked for. The
 * running executable is read through /proc/self/exe, so it may have been replaced on disk.
 */
#ifndef FIRN_SERVER_SERVE_SELF_SELF_MODULES_H
#define FIRN_SERVER_SERVE_SELF_SELF_MODULES_H

#include "server/resolve/table/symbol_texts.h"

#define SELF_MODULES_MAX 256
#define SELF_MODULE_NAME_BYTES 512

struct self_module {
	uintptr_t bias;				/* address in memory - address in the file */
	uintptr_t low, high;			/* in memory, of its segments */
	char name[SELF_MODULE_NAME_BYTES];	/* path, or "[vdso]" */
	char build_id[ELF_BUILD_ID_TEXT_BYTES]; /* "" until the table is built */
	struct symbol_table *table;		/* NULL: not built yet, or it has none */
	struct symbol_texts *texts;		/* of the table */
	bool tried;
};

struct self_modules {
	struct self_module items[SELF_MODULES_MAX];
	size_t count;
};

struct self_modules *self_modules_new(void);
void self_modules_free(struct self_modules *modules); /* accepts NULL */

/* The module that holds the address, its table built if that can be done; NULL when none does. */
struct self_module *self_modules_find(struct self_modules *modules, uintptr_t address);

#endif
