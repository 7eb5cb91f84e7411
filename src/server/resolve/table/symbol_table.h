/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_table - everything known about the code of one binary, in one mapped file, ready for
 * look-ups (symbol_lookup.h): address -> function, inlined callers, file and line.
 *
 * The file is made by symbol_writer, once for each build id; docs/formats/symbol-table.md is its
 * format. Opening verifies its checksum; every read is still checked against the file's bounds, so
 * a damaged or forged table costs no more than a wrong name.
 * Immutable for its users: any number of threads may look up.
 *
 * Names are numbers until they are shown: symbol_texts.h has them.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_TABLE_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_TABLE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"
#include "codec/elf/elf.h"

#define SYMBOL_NONE UINT32_MAX
#define SYMBOL_CHAIN_MAX 256 /* deepest inline chain that is kept */

/* Sources of functions and lines; better ones have higher values. */
enum symbol_origin {
	SYMBOL_ORIGIN_NONE,    /* neither functions nor lines */
	SYMBOL_ORIGIN_SYMBOLS, /* functions of the ELF symbol tables */
	SYMBOL_ORIGIN_LINES,   /* ... and .debug_line without .debug_info */
	SYMBOL_ORIGIN_GO,      /* Go's own table */
	SYMBOL_ORIGIN_DWARF,
	SYMBOL_ORIGINS
};
const char *symbol_origin_text(enum symbol_origin origin);

/* A file that went into the table: of one build id, size and kind tell files apart. */
struct symbol_source {
	uint64_t bytes;
	uint32_t kind; /* enum symbol_input_kind */
};

#define SYMBOL_SOURCES_MAX 8

struct symbol_function {
	uint32_t
		name; /* text: as the source says, or the symbol's; empty when the other tells it */
	uint32_t linkage_name; /* text: mangled; may be empty */
	uint32_t file;	       /* text: where it is declared; 0 = unknown */
	uint32_t line;
	uint32_t is_unnamed; /* 1: see symbol_unnamed_show */
};

/*
 * If only the boundaries of a function are known, `name` is this prefix and the offset of its start
 * in the file, in hexadecimal: "+0x63a0". If there is a guess, `name` is the guess, "~Shape::?",
 * and `linkage_name` the offset.
 */
#define SYMBOL_UNNAMED_PREFIX "+0x"
#define SYMBOL_GUESS_PREFIX "~"

/* Where something is: a function is declared, or called. */
struct symbol_place {
	uint32_t file, line;
};

/* A part of the mapped file. */
struct symbol_span {
	uint64_t offset, bytes;
};

/* Records in packs: see the format. */
struct symbol_records {
	struct symbol_span span;
	uint32_t count;
};

struct symbol_table {
	struct elf_info info; /* of the binary: identity and segments */
	enum symbol_origin origin;
	bool has_binary;      /* segments are the binary's own, not told by a debug file */
	uint64_t debug_bytes; /* of the debug sections that were read */
	struct symbol_source sources[SYMBOL_SOURCES_MAX];
	uint32_t sources_count;
	char *note;	/* what was left out when it was built, and why; "" when nothing was */
	uint32_t maker; /* symbol_table_maker() of who built it */
	uint8_t tries;	/* how often the same maker had tried before, with a note each time */

	/* The rest is for the module, symbol_lookup and symbol_texts. */
	const uint8_t *bytes;
	size_t len;
	uint32_t regions_count, blocks_count;
	uint32_t texts_count, texts_per_block;
	uint32_t files_count; /* texts below it are files */
	uint32_t named_count; /* functions below it have names */
	struct symbol_span regions, starts, rows, text_blocks;
	struct symbol_records scopes, functions;
	/* Used by symbol_lookup: */
	/* Where functions are, by block of records; NULL: none of them was asked for yet. */
	_Atomic(struct symbol_place *) *declared;
	uint32_t *slices; /* of addresses: the block that holds the first; may be NULL */
	uint32_t slices_count;
	unsigned slice_shift;
};

/*
 * Maps the table in an open file, which may be closed afterwards and must not be written any more;
 * `name` is for messages. ERR_CORRUPT when its checksum or its header is wrong, ERR_UNSUPPORTED
 * when it has another version: such tables are built anew.
 */
int symbol_table_open(int fd, const char *name, struct symbol_table **ret, struct err *err);
void symbol_table_free(struct symbol_table *table); /* accepts NULL */
/* Tells this version of firn from others: one may read what another could not. */
uint32_t symbol_table_maker(void);

/* Writes how often it was tried before into the file of a table that nobody else has open. */
int symbol_table_set_tries(int fd, uint8_t tries, struct err *err);

size_t symbol_table_bytes(const struct symbol_table *table); /* of the file */

/* Frees the resident pages of the mapping until they are read again. Any thread. */
void symbol_table_rest(const struct symbol_table *table);

/* A function that a frame names; all zero when there is none. */
struct symbol_function symbol_table_function(const struct symbol_table *table, uint32_t function);

/* True if only the boundaries of a function are known. */
bool symbol_table_is_unnamed(const struct symbol_table *table, uint32_t function);

/* What it is made of, for people and benchmarks. */
struct symbol_table_stats {
	uint64_t row_bytes, scope_bytes, function_bytes, text_bytes;
	uint32_t blocks, scopes, functions, unnamed, texts;
};
struct symbol_table_stats symbol_table_stats(const struct symbol_table *table);

#endif
