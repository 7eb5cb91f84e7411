/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_builder - gathers what the readers of ELF and DWARF find and makes a symbol_table of it.
 *
 * The readers may hand in anything in any order: overlapping, empty and dead ranges (the linker
 * leaves address 0, -1 or -2 in debug information of code that it dropped) are sorted out here.
 * Only what lies in code survives: see symbol_builder_code. One thread; used once.
 */
#ifndef FIRN_SERVER_RESOLVE_SYMBOL_BUILDER_H
#define FIRN_SERVER_RESOLVE_SYMBOL_BUILDER_H

#include "base/idmap.h"
#include "base/strbuf.h"
#include "server/resolve/symbol_table.h"

/* value is valid in [low, high). */
struct symbol_range {
	uint64_t low, high;
	uint32_t value;
};

struct symbol_range_list {
	struct symbol_range *items;
	size_t count, capacity;
};

/* How good a name is when several symbols have one address: a higher rank wins. */
struct symbol_candidate {
	uint64_t address, size; /* size 0: up to the next symbol */
	uint64_t section_end;
	uint32_t name;
	uint32_t file; /* text id, or 0 */
	uint32_t rank;
};

struct symbol_line_row {
	uint64_t address;
	uint32_t file; /* text id */
	uint32_t line, column;
};

/* The sequence of rows that is being added. */
struct symbol_line_sequence {
	struct strbuf rows; /* of the open block */
	struct symbol_line_row pending, written;
	uint64_t block_start;
	uint32_t block_rows;
	bool open, has_pending;
	bool dropped; /* not in code */
};

struct symbol_builder {
	struct symbol_table *table;
	struct strbuf strings, line_bytes;
	struct idmap string_map;
	size_t functions_capacity, scopes_capacity;
	struct symbol_range_list code, ranges, line_blocks;
	struct symbol_candidate *candidates;
	size_t candidates_count, candidates_capacity;
	struct symbol_line_sequence sequence;
	size_t budget_bytes;
	bool over_budget; /* something was left out: the table must not be used */
};

void symbol_builder_init(struct symbol_builder *builder, size_t budget_bytes);
void symbol_builder_free(struct symbol_builder *builder);

/* Names a piece of code; all pieces first, then symbol_builder_code_done, then the rest. */
void symbol_builder_code(struct symbol_builder *builder, uint64_t low, uint64_t high);
void symbol_builder_code_done(struct symbol_builder *builder);

/* Interns text (cut at 64 KiB and at a NUL) and returns its id. */
uint32_t symbol_builder_text(struct symbol_builder *builder, struct slice text);

uint32_t symbol_builder_function(struct symbol_builder *builder,
				 const struct symbol_function *function);

/* A parent must have been added before its children, and its ranges hold theirs. */
uint32_t symbol_builder_scope(struct symbol_builder *builder, const struct symbol_scope *scope);
void symbol_builder_range(struct symbol_builder *builder, uint64_t low, uint64_t high,
			  uint32_t scope);

void symbol_builder_symbol(struct symbol_builder *builder, const struct symbol_candidate *symbol);

/* Rows of a sequence by rising address (others are left out), then its end. */
void symbol_builder_row(struct symbol_builder *builder, const struct symbol_line_row *row);
void symbol_builder_end_sequence(struct symbol_builder *builder, uint64_t address);

/* NULL when over budget. */
struct symbol_table *symbol_builder_finish(struct symbol_builder *builder);

#endif
