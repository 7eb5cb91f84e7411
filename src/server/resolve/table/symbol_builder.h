/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_builder - gathers what the readers of ELF and DWARF find and writes a symbol table of it.
 *
 * The readers may hand in anything in any order: overlapping, empty and dead ranges (the linker
 * leaves address 0, -1 or -2 in debug information of code that it dropped) are sorted out here.
 * Only ranges within code survive: see symbol_builder_code. Address ranges and rows go to a spill
 * as soon as a unit is complete; memory holds texts, functions, calls and scopes, each distinct one
 * once, and a few words for each function. One thread; used once.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_BUILDER_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_BUILDER_H

#include "base/idmap.h"
#include "base/strbuf.h"
#include "server/resolve/table/range_cover.h"
#include "server/resolve/table/spill.h"
#include "server/resolve/table/symbol_table.h"
#include "server/resolve/table/symbol_writer.h"

/* Texts are ids that symbol_builder_text gave out. */
struct symbol_scope {
	uint32_t parent; /* SYMBOL_NONE: a function of its own, else the scope it is inlined into */
	uint32_t function;
	uint32_t call_file, call_line; /* in the parent */
};

/* A function, and where it is called when it is inlined. */
struct symbol_call {
	uint32_t function, file, line;
};

/* How good a name is when several symbols have one address: a higher rank wins. */
struct symbol_candidate {
	uint64_t address, size; /* size 0: up to the next symbol */
	uint64_t section_end;
	uint32_t name;
	uint32_t linkage_name; /* of one that is_unnamed */
	uint32_t file;	       /* text, or 0 */
	uint32_t rank;
	bool is_unnamed; /* a function that is called by where it starts */
};

/* A guess that replaces the name of the function at an address if it has none. */
struct symbol_guess {
	uint64_t address;
	uint32_t text;
};

/*
 * The code of one function according to unwind information (`entry` is `low`), or a part of it that
 * lies elsewhere (`entry` is an address in the function).
 */
struct symbol_extent {
	uint64_t low, high, entry;
};

struct symbol_line_row {
	uint64_t address;
	uint32_t file; /* text */
	uint32_t line;
};

/*
 * Rows for [low, high) in the spill, delta-coded. The read position is kept here, because another
 * piece may lie within this one.
 */
struct symbol_piece {
	uint64_t low, high;
	uint64_t begin;	      /* of its rows */
	uint64_t at, row_end; /* read so far: the next row, and where it starts */
	struct symbol_row row;
	uint32_t root; /* scope of the function that the code is of */
};

struct symbol_piece_list {
	struct symbol_piece *items;
	size_t count, capacity;
};

/* The sequence of line rows that is being added. */
struct symbol_line_sequence {
	struct strbuf rows;
	struct symbol_line_row pending; /* up to the next one */
	struct symbol_row written;
	uint64_t low;
	bool open, has_pending;
	bool dropped; /* not in code */
};

struct builder_scope {
	uint32_t parent, call;
};

/* The only addresses that a table has to answer, by rising address. */
struct symbol_asked {
	const uint64_t *items;
	size_t count;
};

struct symbol_builder {
	bool is_for_once; /* the table is not kept: its texts are packed quickly, not small */
	const struct symbol_asked *asked; /* NULL: all addresses are */
	bool has_scopes, has_lines;	  /* some came, asked for or not */
	struct strbuf strings;
	struct idmap string_map;
	struct symbol_function *functions;
	size_t functions_count, functions_capacity;
	struct idmap function_map;
	struct symbol_call *calls;
	size_t calls_count, calls_capacity;
	struct idmap call_map;
	struct builder_scope *scopes;
	size_t scopes_count, scopes_capacity;

	struct address_range_list code;
	struct address_range_list ranges; /* of the open unit; values are scopes */
	size_t unit_scopes;		  /* where those of the open unit start */
	struct spill spill;
	struct symbol_piece_list scope_pieces, line_pieces;
	struct symbol_line_sequence sequence;

	struct symbol_candidate *candidates;
	size_t candidates_count, candidates_capacity;
	struct symbol_extent *extents;
	size_t extents_count, extents_capacity;
	struct symbol_guess *guesses;
	size_t guesses_count, guesses_capacity;
	size_t budget_bytes;
	bool over_budget; /* something was left out: the table must not be used */
};

/* `spill_fd`: an empty file for what need not be in memory, or -1. */
void symbol_builder_init(struct symbol_builder *builder, size_t budget_bytes, int spill_fd);
void symbol_builder_free(struct symbol_builder *builder);

/* Names a piece of code; all pieces first, then symbol_builder_code_done, then the rest. */
void symbol_builder_code(struct symbol_builder *builder, uint64_t low, uint64_t high);
void symbol_builder_code_done(struct symbol_builder *builder);

/* Interns text (cut at 64 KiB and at a NUL) and returns its id; "" is 0. */
uint32_t symbol_builder_text(struct symbol_builder *builder, struct slice text);

uint32_t symbol_builder_function(struct symbol_builder *builder,
				 const struct symbol_function *function);

uint32_t symbol_builder_call(struct symbol_builder *builder, const struct symbol_call *call);

/* A parent must have been added before its children, in one unit, and its ranges hold theirs. */
uint32_t symbol_builder_scope(struct symbol_builder *builder, const struct symbol_scope *scope);
void symbol_builder_range(struct symbol_builder *builder, uint64_t low, uint64_t high,
			  uint32_t scope);

/* Scopes and ranges so far are complete: a compilation unit, a function. */
void symbol_builder_unit_done(struct symbol_builder *builder);

void symbol_builder_symbol(struct symbol_builder *builder, const struct symbol_candidate *symbol);

/* An extent that reaches out of its piece of code is cut there. */
void symbol_builder_extent(struct symbol_builder *builder, const struct symbol_extent *extent);

/* At most one per address; used if an extent starts there, too. */
void symbol_builder_guess(struct symbol_builder *builder, const struct symbol_guess *guess);

/* Rows of a sequence by rising address (others are left out), then its end. */
void symbol_builder_row(struct symbol_builder *builder, const struct symbol_line_row *row);
void symbol_builder_end_sequence(struct symbol_builder *builder, uint64_t address);

/* How many of the addresses that are asked for lie below this one. */
size_t symbol_asked_below(const struct symbol_asked *asked, uint64_t address);

/* Whether a row of [low, high) can be an answer. */
bool symbol_builder_is_asked(const struct symbol_builder *builder, uint64_t low, uint64_t high);

/* Whether complete units have a function at each address that is asked for. */
bool symbol_builder_has_all_asked(const struct symbol_builder *builder);

/* True if functions with ranges, or lines, have come. */
bool symbol_builder_has_scopes(const struct symbol_builder *builder);
bool symbol_builder_has_lines(const struct symbol_builder *builder);

/*
 * Writes the table to an empty file, with what the first fields of `about` say. ERR_LIMIT when over
 * budget.
 */
int symbol_builder_finish(struct symbol_builder *builder, const struct symbol_table *about, int fd,
			  struct err *err);

#endif
