/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_store - the symbol tables that a server keeps: one file for each build id, made once.
 *
 *     <path>/<xx>/<rest of the build id>.symbols
 *
 * A table is rebuilt when a new file has come, when it is damaged, or when it has another version;
 * a worse table never replaces a better one, so no name is lost when files disappear. If reading
 * debug information failed, it is tried again when the table is opened, twice, and by each other
 * version of firn. Over the budget, the least recently used tables are removed. Thread-safe; one
 * process for each path.
 */
#ifndef FIRN_SERVER_RESOLVE_SOURCES_SYMBOL_STORE_H
#define FIRN_SERVER_RESOLVE_SOURCES_SYMBOL_STORE_H

#include "server/resolve/sources/symbol_sources.h"
#include "server/resolve/table/symbol_table.h"

#define SYMBOL_STORE_BYTES_DEFAULT ((uint64_t)8 << 30)

struct symbol_store;

/* Makes the folder, and removes what a crash left there. `path` NULL: tables are not kept. */
int symbol_store_open(const char *path, uint64_t budget_bytes, struct symbol_store **ret,
		      struct err *err);
void symbol_store_close(struct symbol_store *store); /* accepts NULL */

/*
 * The best table for a valid build id that is stored or can be made of the sources (possibly none);
 * ERR_NOT_FOUND if there is neither. Blocks without a deadline, or until *cancelled (may be NULL).
 */
int symbol_store_get(struct symbol_store *store, struct slice build_id,
		     const struct symbol_sources *sources, const _Atomic bool *cancelled,
		     struct symbol_table **ret, struct err *err);

/* True if the table was not made of this file. */
bool symbol_store_is_news(const struct symbol_table *table, int fd, enum symbol_input_kind kind);

#endif
