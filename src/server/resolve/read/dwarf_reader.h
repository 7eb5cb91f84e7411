/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_reader - walks the DWARF of an ELF file with libdw and hands functions, inlined calls
 * and line tables to a symbol_builder.
 *
 * libdw parses single entries, abbreviations, attributes and range lists; the walk, its bounds and
 * the line tables are ours. A bad unit costs that unit, not the file.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_DWARF_READER_H
#define FIRN_SERVER_RESOLVE_READ_DWARF_READER_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "server/resolve/read/line_program.h"
#include "server/resolve/read/split_unit.h"
#include "server/resolve/table/symbol_builder.h"

struct dwarf_limits {
	uint64_t entries;    /* DIEs visited */
	int64_t deadline_ns; /* on the thread's CPU clock */
};

#define DWARF_TEXTS 6

/* The file's sections, as libdw has them; their bytes outlive the call. */
struct dwarf_sections {
	struct line_sections lines;
	struct slice texts[DWARF_TEXTS]; /* where names can be */
	struct slice addresses, ranges;	 /* .debug_addr, .debug_ranges: of split units */
	struct split_places split;
	struct slice image; /* what the sections lie in, when that is a file mapped to be read */
};

/*
 * Reads all units; if these give neither functions nor lines (`dwarf` may be NULL), all line
 * tables. Fails with ERR_LIMIT or ERR_DEADLINE; damage inside the DWARF is counted in *ret_damaged
 * (units and line tables that were left early).
 */
int dwarf_reader_run(Dwarf *dwarf, const struct dwarf_sections *sections,
		     const struct dwarf_limits *limits, struct symbol_builder *builder,
		     uint64_t *ret_damaged, struct err *err);

#endif
