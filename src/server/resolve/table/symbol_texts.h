/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_texts - the names and paths of one symbol table, unpacked block by block as they are
 * asked for.
 *
 * Unpacked texts stay at the same address until symbol_texts_trim or symbol_texts_free; they take
 * at most SYMBOL_TEXTS_BYTES_MAX, beyond which texts are empty. One thread. The table outlives it.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_TEXTS_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_TEXTS_H

#include "base/strbuf.h"
#include "server/resolve/table/symbol_lookup.h"

#define SYMBOL_TEXTS_BYTES_MAX ((size_t)512 << 20)

struct symbol_texts;

struct symbol_texts *symbol_texts_new(const struct symbol_table *table);
void symbol_texts_free(struct symbol_texts *texts); /* accepts NULL */

/* The text with a NUL after it; empty for 0, and for what the table does not have. */
struct slice symbol_texts_get(struct symbol_texts *texts, uint32_t text);

/* Forgets what was unpacked if that is more than `max_bytes`. */
void symbol_texts_trim(struct symbol_texts *texts, size_t max_bytes);

/* One frame with its texts. */
struct symbol_line {
	/* As the source says. Empty when the mangled one tells it, or when only the line is known.
	 */
	struct slice name;
	struct slice linkage_name; /* mangled, or empty */
	struct slice file;
	uint32_t line, start_line; /* 0 = unknown */
	bool is_unnamed;	   /* see symbol_unnamed_show */
};

/* How functions without names are shown: "libz.so.1+0x63a0", or "~Shape::?+0x63a0". */
void symbol_unnamed_show(struct strbuf *out, struct slice binary, struct slice name,
			 struct slice linkage_name);

/* As symbol_lookup. */
size_t symbol_texts_lookup(struct symbol_texts *texts, uint64_t address,
			   struct symbol_line ret_lines[SYMBOL_CHAIN_MAX]);

#endif
