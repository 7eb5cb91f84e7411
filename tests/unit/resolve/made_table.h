/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_table - a symbol table made in this process, in memory, and opened: for the tests of what
 * makes and reads tables.
 */
#ifndef FIRN_TESTS_RESOLVE_MADE_TABLE_H
#define FIRN_TESTS_RESOLVE_MADE_TABLE_H

#include "server/resolve/table/symbol_builder.h"
#include "server/resolve/read/symbol_reader.h"
#include "server/resolve/table/symbol_texts.h"

struct made_table {
	struct symbol_table *table;
	struct symbol_texts *texts;
	int fd; /* of the file */
};

/* As symbol_builder_finish, and symbol_reader_write, with the table opened. */
int made_table_finish(struct symbol_builder *builder, struct made_table *ret, struct err *err);
int made_table_read(const struct symbol_input *inputs, size_t count,
		    const struct symbol_limits *limits, struct made_table *ret, struct err *err);
void made_table_free(struct made_table *made);

#endif
