/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopclntab_lines - files, lines and inlined calls from Go's table of functions.
 *
 * Go's runtime prints stack traces from them, so every Go program has them, stripped or not. The
 * layouts of Go 1.2 (files and lines alone), 1.16, 1.18 and 1.20 (the present one). Whole tables
 * are in memory; slices point into them. Every count and loop is bounded: what is damaged is left
 * out. One thread at a time.
 *
 * Sources: Go's src/runtime/symtab.go, symtabinl.go (inlinedCall), runtime2.go (_func),
 * src/internal/abi/symtab.go, src/cmd/link/internal/ld/pcln.go.
 */
#ifndef FIRN_CODEC_ELF_GOPCLNTAB_LINES_H
#define FIRN_CODEC_ELF_GOPCLNTAB_LINES_H

#include "codec/elf/gopclntab.h"

struct gopclntab_row { /* holds up to the next one, or the function's end */
	uint64_t address;
	struct slice file; /* empty: unknown */
	uint32_t line;
};

struct gopclntab_call {	     /* one that was inlined */
	struct slice name;   /* of the function called */
	uint32_t start_line; /* where it is declared; 0: unknown */
	int32_t parent;	     /* index of the call that it was inlined into; -1: the function */
	struct slice file;   /* where the call is */
	uint32_t line;
};

struct gopclntab_span { /* code of an inlined call */
	uint64_t low, high;
	uint32_t call;
};

struct gopclntab_function {
	struct slice name;
	uint64_t start, end; /* without padding */
	uint32_t start_line; /* where it is declared, since Go 1.20; 0: unknown */
	struct slice file;   /* at its start */
	struct gopclntab_row *rows;
	size_t rows_count, rows_capacity;
	struct gopclntab_call *calls;
	size_t calls_count, calls_capacity;
	struct gopclntab_span *spans; /* not overlapping, the innermost call of each place */
	size_t spans_count, spans_capacity;
};

struct gopclntab_lines {
	struct gopclntab_layout layout; /* from gopclntab_open, with its text set */
	struct slice table;		/* the section, from where gopclntab_open found it */
	/* Where inline trees are. Since Go 1.18 their offsets count from function_data_address. */
	struct slice data;
	uint64_t data_address, function_data_address; /* 0: inlined calls are not known */
};

/*
 * Reads function `index`, below layout.functions_count, into *ret, whose arrays are used again; it
 * starts as zeros. ERR_INVALID when the function's entry is damaged.
 */
int gopclntab_lines_read(const struct gopclntab_lines *lines, uint64_t index,
			 struct gopclntab_function *ret, struct err *err);

void gopclntab_function_free(struct gopclntab_function *function);

#endif
