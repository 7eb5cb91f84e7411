/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_build - makes the unwind table of a binary: ELF file in, table file (table_file.h) out.
 *
 * Gathers the functions of all sources of unwind information in the file, sorts them, and streams
 * their rows, by file offset, into segments. Where sources overlap the first in the order of
 * enum table_source wins; within a source a function ends where the next begins. Padding of up to
 * 15 bytes between functions belongs to the one before it; wider gaps get UNWIND_CFA_NONE.
 *
 * Memory: 12 bytes for each function, and up to 8 MB for the segment being made. Thread-safe: no
 * state but the arguments. x86-64 and arm64, 64-bit little-endian.
 */
#ifndef FIRN_AGENT_UNWIND_TABLE_BUILD_H
#define FIRN_AGENT_UNWIND_TABLE_BUILD_H

#include <stdatomic.h>

#include "agent/unwind/table_file.h"
#include "base/slice.h"

/* The ELF file, from an open file or from memory (the vdso). Borrowed. */
struct table_input {
	int fd; /* -1: `image` */
	struct slice image;
	const char *name; /* for messages */
};

struct table_limits {		   /* 0 = the default */
	uint64_t section_bytes;	   /* of one section of unwind information; 1 GB */
	uint64_t functions;	   /* 4 million */
	uint64_t rows;		   /* before equal neighbours are joined; 64 million */
	const atomic_bool *cancel; /* looked at between functions; NULL = never */
};

struct table_stats {
	uint64_t functions[TABLE_SOURCES]; /* listed by each source */
	uint64_t rows, rows_unsupported;   /* in the table */
	uint64_t rules;
	uint64_t bytes; /* of the images */
	uint32_t segments;
	uint64_t malformed;  /* functions left out, or cut, because of nonsense */
	uint64_t outside;    /* functions at addresses that are not in the file's code */
	uint64_t duplicates; /* second functions at one address in one source */
	bool is_cut;	     /* the table is full (TABLE_SEGMENTS_MAX): code behind has no rows */
	char sources[TABLE_FILE_SOURCES_BYTES];
};

/*
 * Writes to the start of `out_fd`, a regular file or memfd, whose length becomes the table's. A
 * file without unwind information gives a table without segments and is no error. ERR_INVALID: no
 * ELF file, or one that contradicts itself; ERR_UNSUPPORTED: another machine; ERR_LIMIT;
 * ERR_CANCELLED; ERR_IO. After an error what was written is worth nothing.
 */
int table_build(const struct table_input *input, int out_fd, const struct table_limits *limits,
		struct table_stats *ret_stats, struct err *err);

#endif
