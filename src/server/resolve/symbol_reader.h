/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_reader - builds a symbol_table from open files.
 *
 * The one door to libelf and libdw: everything that parses foreign bytes with them is behind
 * symbol_table_build, which needs nothing but file descriptors and gives nothing but the table,
 * so it can move to a process of its own. Files are read with pread, never mapped.
 */
#ifndef FIRN_SERVER_RESOLVE_SYMBOL_READER_H
#define FIRN_SERVER_RESOLVE_SYMBOL_READER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "server/resolve/symbol_table.h"

#define SYMBOL_INPUTS_MAX 8

enum symbol_input_kind {
	SYMBOL_INPUT_MAIN,	/* the binary or a debug file of it */
	SYMBOL_INPUT_ALTERNATE, /* what dwz moved out of the others' DWARF */
	SYMBOL_INPUT_PACKAGE,	/* .dwp: split units of all compilations */
};

struct symbol_input {
	int fd;		  /* regular file, readable */
	const char *name; /* for messages */
	enum symbol_input_kind kind;
	/* Where it lies, so that split units beside it are found; NULL: none are looked for. */
	const char *directory;
};

struct symbol_limits {
	uint64_t file_bytes;	/* of one input */
	uint64_t section_bytes; /* of all debug sections of one input, uncompressed */
	uint64_t table_bytes;	/* memory for the table while it is built */
	uint64_t entries;	/* DWARF entries visited */
	int64_t duration_ns;	/* for reading DWARF */
	const _Atomic bool *cancelled; /* ends the reading of DWARF; may be NULL */
};

extern const struct symbol_limits symbol_limits_default;

/*
 * The first input is the binary, whose segments the table keeps; then come separate debug files.
 * DWARF comes from the input that has most of it, symbols from all. When the DWARF goes over a
 * limit the table has symbols alone. Fails when no input is an ELF file that can be read.
 */
int symbol_table_build(const struct symbol_input *inputs, size_t count,
		       const struct symbol_limits *limits, struct symbol_table **ret,
		       struct err *err);

/* Registers the module's metrics; call once. */
void symbol_reader_init(void);

#endif
