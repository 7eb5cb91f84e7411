/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_symbols - hands functions, inlined calls and lines of Go's function table to a symbol_builder,
 * for Go programs without DWARF.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_GO_SYMBOLS_H
#define FIRN_SERVER_RESOLVE_READ_GO_SYMBOLS_H

#include <libelf.h>

#include "server/resolve/table/symbol_builder.h"

struct go_limits {
	uint64_t section_bytes; /* of one section read */
	int64_t deadline_ns;	/* on the thread's CPU clock */
};

/*
 * Reads the table, after symbol_builder_code_done. *ret_found says whether there was one; functions
 * whose entries are damaged are left out. Fails with ERR_LIMIT or ERR_DEADLINE.
 */
int go_symbols_read(Elf *elf, uint16_t machine, const char *name, const struct go_limits *limits,
		    struct symbol_builder *builder, bool *ret_found, struct err *err);

#endif
