/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_store - the symbol tables that a server keeps: one file for each build id, made once.
 *
 *     <path>/<xx>/<rest of the build id>.symbols
 *
 * A table is made anew when a file has come that did not go into it, when it is damaged, or of
 * another version; what is worse than what is kept never replaces it, so files that go away again
 * take no names with them. One that lacks debug information because that could not be read is tried
 * again when it is opened, twice, and by each other version of firn. Over the budget those go that
 * were not used for longest. Thread-safe; one process for each path.
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
 * The best table for a valid build id that is kept or can be made of the sources, which may be
 * none; ERR_NOT_FOUND then, when none is kept. Takes as long as it takes, or until *cancelled (may
 * be NULL).
 */
int symbol_store_get(struct symbol_store *store, struct slice build_id,
		     const struct symbol_sources *sources, const _Atomic bool *cancelled,
		     struct symbol_table **ret, struct err *err);

/* True if a file, of which this table may have been made, would be news to it. */
bool symbol_store_is_news(const struct symbol_table *table, int fd, enum symbol_input_kind kind);

#endif
