/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_writer - writes a symbol table's file: docs/formats/symbol-table.md.
 *
 * Rows first, by rising address, which go to the file as they come; scopes, calls, functions and
 * texts are packed in memory. One thread; used once.
 */
#ifndef FIRN_SERVER_RESOLVE_SYMBOL_WRITER_H
#define FIRN_SERVER_RESOLVE_SYMBOL_WRITER_H

#include "base/strbuf.h"
#include "server/resolve/symbol_format.h"
#include "server/resolve/symbol_table.h"

/* What holds from `address` on, up to the next row. */
struct symbol_row {
	uint64_t address;
	uint32_t scope; /* SYMBOL_NONE: none */
	uint32_t file, line, column;
};

/* Records, packed when all are there. */
struct record_writer {
	uint32_t *numbers; /* `fields` of each record */
	size_t numbers_count, numbers_capacity;
	unsigned fields;
	uint32_t count;
};

struct symbol_writer {
	int fd;
	struct strbuf out; /* not yet in the file */
	uint64_t written;
	uint32_t crc;
	int error_number; /* of the first failed write */

	struct symbol_row rows[SYMBOL_BLOCK_ROWS_MAX];
	unsigned rows_count;
	uint64_t region_base;
	uint32_t regions_count, blocks_count;
	struct strbuf regions, starts;

	struct record_writer scopes, calls, functions;

	struct strbuf text_offsets, text_blocks, texts; /* texts: of the open block */
	struct slice last_text;
	uint32_t texts_count;
	void *encoder;
};

void symbol_writer_init(struct symbol_writer *writer, int fd);
void symbol_writer_free(struct symbol_writer *writer);

/* By rising address. */
void symbol_writer_row(struct symbol_writer *writer, const struct symbol_row *row);

/* The next record; `fields` are those of symbol_format.h. */
void record_writer_add(struct record_writer *records, const uint32_t *fields);

/* The next text, at most SYMBOL_TEXT_BYTES_MAX; its bytes are needed until the one after it. */
void symbol_writer_text(struct symbol_writer *writer, struct slice text);

/* Completes the file with what the first fields of `about` say; texts below files_count are files.
 */
int symbol_writer_finish(struct symbol_writer *writer, const struct symbol_table *about,
			 uint32_t files_count, struct err *err);

#endif
