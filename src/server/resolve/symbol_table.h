/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_table - everything known about the code of one binary, ready for look-ups.
 *
 * Immutable once built, so any number of threads may look up at once. Sorted lists, each
 * found into by binary search:
 *
 *   intervals   address -> scope: a function, or a call that was inlined into one
 *   scopes      parent scope, function, place of the inlined call
 *   line blocks address -> file, line, column (compact deltas, at most 64 rows a block)
 *   symbols     address -> name from the ELF symbol tables, for code without DWARF; likewise the
 *               name of the source file, which local symbols have
 *
 * All text is interned in one string area; text id 0 is "".
 */
#ifndef FIRN_SERVER_RESOLVE_SYMBOL_TABLE_H
#define FIRN_SERVER_RESOLVE_SYMBOL_TABLE_H

#include "base/slice.h"
#include "codec/elf.h"

#define SYMBOL_NONE UINT32_MAX
#define SYMBOL_CHAIN_MAX 256 /* deepest inline chain that is kept */
#define SYMBOL_LINE_BLOCK_ROWS 64

/*
 * Sorted addresses with a value each. Stored as 32-bit low halves under a few regions that share
 * their high half.
 */
struct address_region {
	uint32_t high;
	uint32_t first; /* index of its first entry */
};

struct address_index {
	struct address_region *regions;
	uint32_t *lows;
	uint32_t *values;
	uint32_t regions_count;
	uint32_t count;
};

struct symbol_function {
	uint32_t name;	       /* text id, likewise the next two */
	uint32_t linkage_name; /* 0 = none */
	uint32_t file;	       /* where it is declared */
	uint32_t line;
};

struct symbol_scope {
	uint32_t parent; /* SYMBOL_NONE: a function of its own, else the scope it is inlined into */
	uint32_t function;
	uint32_t call_file, call_line, call_column; /* in the parent */
};

struct symbol_table {
	char *strings;
	struct symbol_function *functions;
	struct symbol_scope *scopes;
	uint8_t *line_bytes;
	struct address_index intervals, line_blocks, symbols, symbol_files;
	size_t strings_bytes, functions_count, scopes_count, line_bytes_count;
	struct elf_info info; /* of the binary: identity and segments */
	bool has_debug_info;  /* DWARF was read */
};

/* One frame of the answer; the slices live as long as the table. */
struct symbol_line {
	/* As the source says. Empty when linkage_name is not, or when only the line is known. */
	struct slice name;
	struct slice linkage_name; /* mangled, or empty */
	struct slice file;
	uint32_t line, column, start_line; /* 0 = unknown */
};

void symbol_table_free(struct symbol_table *table); /* accepts NULL */
size_t symbol_table_bytes(const struct symbol_table *table);

/*
 * The frames at an ELF virtual address, innermost first; the last is the physical function.
 * Writes at most SYMBOL_CHAIN_MAX lines and returns how many; 0 when nothing covers the address.
 */
size_t symbol_table_lookup(const struct symbol_table *table, uint64_t address,
			   struct symbol_line ret_lines[SYMBOL_CHAIN_MAX]);

#endif
