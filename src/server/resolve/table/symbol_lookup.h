/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_lookup - the look-ups in a symbol table: address -> scope and place -> chain of frames.
 *
 * A random look-up is five dependent cache misses. A batch overlaps the loads of several addresses,
 * and visits a large table in the order of addresses. Callers that cache the chain of each scope,
 * which is always the same, look up places only.
 *
 * Allocates some MB while a batch is sorted, and up to 8 bytes for each function whose
 * neighbourhood was met, which the table keeps. Any number of threads may look up in a table.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_LOOKUP_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_LOOKUP_H

#include "server/resolve/table/symbol_table.h"

/* One frame of an answer. */
struct symbol_frame {
	uint32_t function; /* SYMBOL_NONE: only the place is known */
	uint32_t file;	   /* text, 0 = unknown */
	uint32_t line;	   /* 0 = unknown */
};

/* The innermost scope at an address, and the place there. Without both, nothing is known. */
struct symbol_location {
	uint32_t scope;	     /* SYMBOL_NONE: none */
	uint32_t file, line; /* 0 = unknown */
};

/*
 * The frames at an ELF virtual address, innermost first; the last is the physical function.
 * Returns how many; 0 when nothing is known of the address.
 */
size_t symbol_lookup(const struct symbol_table *table, uint64_t address,
		     struct symbol_frame ret_frames[SYMBOL_CHAIN_MAX]);

/*
 * The same for many addresses. Visits come in any order and tell which of the addresses is meant;
 * frames live during the call, and there may be none.
 */
typedef void symbol_lookup_visit_f(void *context, size_t index, const struct symbol_frame *frames,
				   size_t count);
void symbol_lookup_many(const struct symbol_table *table, const uint64_t *addresses, size_t count,
			symbol_lookup_visit_f *visit, void *context);

/* Where each of many addresses is. */
void symbol_lookup_locations(const struct symbol_table *table, const uint64_t *addresses,
			     size_t count, struct symbol_location *ret_locations);

/* A function, and where it is inlined: a step out of a chain of frames. */
struct symbol_caller {
	uint32_t function;
	uint32_t scope;	     /* that it is inlined into; SYMBOL_NONE: it is a function of its own */
	uint32_t file, line; /* of the call there; 0 = unknown */
};

/* False when the table has no such scope. */
bool symbol_lookup_scope(const struct symbol_table *table, uint32_t scope,
			 struct symbol_caller *ret);

/* Where a function is declared, as far as the table tells. */
struct symbol_place symbol_lookup_declared(const struct symbol_table *table, uint32_t function);

/* Makes what each look-up needs, while the table is opened; symbol_table_free frees it. */
void symbol_lookup_prepare(struct symbol_table *table);
void symbol_lookup_free(struct symbol_table *table);

#endif
