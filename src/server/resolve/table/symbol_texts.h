/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_texts - the names and paths of one symbol table, unpacked block by block as they are
 * asked for.
 *
 * Unpacked texts stay at the same address until symbol_texts_trim or symbol_texts_free. Who looks
 * into many tables shares a pool among them: it has one decoder, and bounds all of them together.
 * A pool takes at most SYMBOL_TEXTS_BYTES_MAX, beyond which texts are empty, until it is trimmed.
 * One thread. The table, and the pool, outlive the texts.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_TEXTS_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_TEXTS_H

#include "base/strbuf.h"
#include "server/resolve/table/symbol_lookup.h"

#define SYMBOL_TEXTS_BYTES_MAX ((size_t)512 << 20)

struct symbol_text_pool;
struct symbol_texts;

struct symbol_text_pool *symbol_text_pool_new(void);
void symbol_text_pool_free(struct symbol_text_pool *pool); /* accepts NULL */
size_t symbol_text_pool_bytes(const struct symbol_text_pool *pool);

struct symbol_texts *symbol_texts_new(const struct symbol_table *table);
void symbol_texts_free(struct symbol_texts *texts); /* accepts NULL */

/* The text with a NUL after it; empty for 0, and for what the table does not have. */
struct slice symbol_texts_get(struct symbol_texts *texts, uint32_t text);

/* From now on, and before anything was asked for, in a pool that others share. */
void symbol_texts_share(struct symbol_texts *texts, struct symbol_text_pool *pool);

/*
 * Forgets what was not used for longest, until what is unpacked, also of others that share the
 * pool, is at most `max_bytes`.
 */
void symbol_texts_trim(struct symbol_texts *texts, size_t max_bytes);

/* The numbers of texts: the same ones for each frame of one function. */
struct symbol_line_texts {
	uint32_t name, linkage_name, file;
};

/* One frame with its texts. */
struct symbol_line {
	struct symbol_line_texts of;
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

/* As symbol_lookup; without texts, which are empty until symbol_texts_fill. */
size_t symbol_texts_find(const struct symbol_table *table, uint64_t address,
			 struct symbol_line ret_lines[SYMBOL_CHAIN_MAX]);
void symbol_texts_fill(struct symbol_texts *texts, struct symbol_line *line);

/* Both. */
size_t symbol_texts_lookup(struct symbol_texts *texts, uint64_t address,
			   struct symbol_line ret_lines[SYMBOL_CHAIN_MAX]);

#endif
