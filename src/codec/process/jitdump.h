/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump - records of a jitdump file, in which runtimes log the code they generate, in the byte
 * order of its writer (tools/perf/Documentation/jitdump-specification.txt in the kernel's sources).
 *
 * A file is a header and then records, each with its size, so that unknown ones can be skipped. It
 * is written while it is read: the reader hands in what is there, and the record's head says
 * how much is needed. Only the beginning of a record's body has to be given, which leaves out the
 * machine code at the end of JITDUMP_LOAD and all but the first lines of JITDUMP_DEBUG_INFO; of
 * JITDUMP_UNWINDING_INFO all is needed. The process writes what it likes. Slices of the results
 * point into the input.
 */
#ifndef FIRN_CODEC_PROCESS_JITDUMP_H
#define FIRN_CODEC_PROCESS_JITDUMP_H

#include "base/err.h"
#include "base/slice.h"

#define JITDUMP_HEADER_BYTES 40
#define JITDUMP_RECORD_HEAD_BYTES 16
#define JITDUMP_BODY_BYTES_MAX 16384u		 /* of a body: as much as the parsers look at */
#define JITDUMP_UNWINDING_BYTES_MAX (192u << 10) /* ... of unwinding information */

enum jitdump_record_id {
	JITDUMP_LOAD,		/* new code: its name and place */
	JITDUMP_MOVE,		/* known code at a new place */
	JITDUMP_DEBUG_INFO,	/* source lines of the code loaded next */
	JITDUMP_CLOSE,		/* nothing follows */
	JITDUMP_UNWINDING_INFO, /* of the code loaded next, or of all that is loaded next */
};

struct jitdump_header {
	uint64_t started_at; /* on the clock of the records */
	uint32_t bytes;	     /* the first record begins there */
	uint32_t machine;    /* EM_* */
	uint32_t pid;	     /* as the writer sees itself */
	bool swapped;	     /* the other byte order than this host's */
};

struct jitdump_record {
	uint64_t at;	/* time on the writer's clock, most often CLOCK_MONOTONIC */
	uint32_t id;	/* enum jitdump_record_id, or a later one */
	uint32_t bytes; /* with this head; >= JITDUMP_RECORD_HEAD_BYTES */
};

struct jitdump_code {
	uint64_t start;
	uint32_t bytes; /* > 0; start + bytes does not overflow */
};

struct jitdump_load {
	struct jitdump_code code;
	uint64_t index;
	struct slice name; /* not empty */
};

struct jitdump_move {
	uint64_t from;
	struct jitdump_code to;
};

/* The first line of the code: where the function begins. */
struct jitdump_source {
	uint64_t code; /* start of the code it is about */
	uint32_t line;
	struct slice file; /* empty = the table has no lines */
};

/*
 * An .eh_frame. V8 and CPython write one for each piece of code, as `perf inject` puts it: right
 * behind the code, from a multiple of 8 bytes on. LLVM writes one for many pieces, with the address
 * where it is in memory.
 */
struct jitdump_unwinding {
	struct slice frames; /* empty = nothing is said of the code */
	uint64_t address;    /* of `frames`; 0 = behind the code that is loaded next */
};

/* `bytes` is at least JITDUMP_HEADER_BYTES long. ERR_UNSUPPORTED for other versions. */
int jitdump_parse_header(struct slice bytes, struct jitdump_header *ret, struct err *err);

/* `bytes` is at least JITDUMP_RECORD_HEAD_BYTES long. */
int jitdump_parse_record(struct slice bytes, bool swapped, struct jitdump_record *ret,
			 struct err *err);

/*
 * `body` is what follows the record's head: all of it, or its first JITDUMP_BODY_BYTES_MAX bytes.
 * ERR_INVALID when it says nothing that can be used.
 */
int jitdump_parse_load(struct slice body, bool swapped, struct jitdump_load *ret, struct err *err);
int jitdump_parse_move(struct slice body, bool swapped, struct jitdump_move *ret, struct err *err);
int jitdump_parse_debug_info(struct slice body, bool swapped, struct jitdump_source *ret,
			     struct err *err);

/* `body` is all of it. ERR_UNSUPPORTED for another order than that of V8, CPython or LLVM. */
int jitdump_parse_unwinding(struct slice body, bool swapped, struct jitdump_unwinding *ret,
			    struct err *err);

#endif
