/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_writer - writes a symbol table's file: docs/formats/symbol-table.md.
 *
 * Scopes, functions and texts are packed in memory, rows go to the file as they come, by rising
 * address. One thread; used once.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_WRITER_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_WRITER_H

#include "base/strbuf.h"
#include "server/resolve/table/symbol_pack.h"
#include "server/resolve/table/symbol_table.h"

/* Scope, file and line of all addresses from `address` on, up to the next row. */
struct symbol_row {
	uint64_t address;
	uint32_t scope; /* SYMBOL_NONE: none */
	uint32_t file, line;
};

/* Blocks of records, the last of which is being filled. */
struct record_writer {
	unsigned fields, held; /* records held: not yet packed */
	uint32_t count;
	struct symbol_pack_input inputs[SYMBOL_PACK_FIELDS_MAX];
	struct strbuf offsets, packs;
};

struct symbol_writer {
	int fd;
	struct strbuf out; /* not yet in the file */
	uint64_t written;
	uint32_t crc;
	int error_number; /* of the first failed write */

	struct record_writer scopes, functions;
	uint32_t unnamed_count; /* of functions, the last ones: the caller's to set */

	struct symbol_pack_input row_inputs[ROW_FIELDS];
	unsigned rows_count; /* of the open block */
	uint64_t first_address, last_address;
	uint64_t region_base;
	uint32_t regions_count, blocks_count;
	struct strbuf regions, starts;

	struct strbuf text_offsets, text_blocks, texts; /* texts: of the open block */
	uint32_t texts_count, texts_per_block;
	int level; /* of compression */
	void *encoder;
};

void symbol_writer_init(struct symbol_writer *writer, int fd);
void symbol_writer_free(struct symbol_writer *writer);

/*
 * The next scope: how far back its parent is (0: none), its function, and where it is called; that
 * is told from where the parent's function is declared.
 */
void symbol_writer_scope(struct symbol_writer *writer, uint32_t parent_step, uint32_t function,
			 const struct symbol_place *call, const struct symbol_place *caller);

/* The next function. */
void symbol_writer_function(struct symbol_writer *writer, const struct symbol_place *declared);

/*
 * By rising address, after all functions. `declared`: where the innermost function is; zeros when
 * there is none.
 */
void symbol_writer_row(struct symbol_writer *writer, const struct symbol_row *row,
		       const struct symbol_place *declared);

/*
 * Before the first text: whether the table is not kept, how many functions they are of, and how
 * long all are at most, with NULs.
 */
void symbol_writer_begin_texts(struct symbol_writer *writer, bool is_for_once,
			       uint32_t functions_count, uint64_t texts_bytes);

/* The next text, at most SYMBOL_TEXT_BYTES_MAX. */
void symbol_writer_text(struct symbol_writer *writer, struct slice text);

/*
 * Completes the file with what the first fields of `about` say; texts below files_count are files.
 */
int symbol_writer_finish(struct symbol_writer *writer, const struct symbol_table *about,
			 uint32_t files_count, struct err *err);

#endif
