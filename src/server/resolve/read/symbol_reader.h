/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_reader - reads open ELF files and writes the symbol table of their code.
 *
 * All use of libelf and libdw goes through here. Files are mapped, so truncating one kills the
 * process, and its bytes may crash it. So outside of tests this runs in a process of its own
 * (symbol_worker.h). It needs nothing but file descriptors.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_SYMBOL_READER_H
#define FIRN_SERVER_RESOLVE_READ_SYMBOL_READER_H

#include <stdbool.h>

#include "base/err.h"
#include "server/resolve/table/symbol_builder.h"

#define SYMBOL_INPUTS_MAX SYMBOL_SOURCES_MAX
#define SYMBOL_SCRATCH_FILES (SYMBOL_INPUTS_MAX + 2) /* unpacked inputs; with and without DWARF */

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
	uint64_t table_bytes;	/* memory for what the table is made of */
	uint64_t entries;	/* DWARF entries visited */
	int64_t duration_ns;	/* CPU time for reading DWARF */
	bool is_for_once;	/* the table is not kept: no time is spent on making it small */
	const struct symbol_asked *asked; /* NULL: the table is of all addresses */
};

extern const struct symbol_limits symbol_limits_default;

/* What came of it, besides the table. */
struct symbol_report {
	uint64_t
		damaged; /* units and line tables of DWARF that were left early because of damage */
	uint64_t refused; /* files whose debug information was not used */
};

/*
 * The first input is the binary, whose segments the table keeps; then come separate debug files.
 * DWARF comes from the input that has most of it, symbols from all. If debug information exceeds a
 * limit, the table has symbols only, and its note says why. A `note` that is not NULL says why
 * debug information must not be read. Writes to `out_fd`, an empty file; `scratch` are
 * SYMBOL_SCRATCH_FILES empty files (NULL: in memory), which it closes. Fails when no input is an
 * ELF file that can be read.
 */
int symbol_reader_write(const struct symbol_input *inputs, size_t count,
			const struct symbol_limits *limits, const char *note, const int *scratch,
			int out_fd, struct symbol_report *ret_report, struct err *err);

/* What tells one version of an input from another. */
int symbol_reader_source(const struct symbol_input *input, struct symbol_source *ret,
			 struct err *err);

#endif
