/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_reader - reads one perf map or jitdump file incrementally while a process writes it.
 *
 * Each turn goes on where the last one ended: at the end of the last whole line or record. A file
 * that became shorter, or whose bytes before that place have changed, was rewritten, and is read
 * from its beginning; so is another file adopted in its place. A copy may begin where the reader
 * ended, minus the bytes that it compares. One thread at a time.
 *
 * Bounds: CODE_READER_TURN_BYTES read in a turn; of perf maps over CODE_READER_PERF_MAP_BYTES_MAX
 * only the end, which is the newest; names are cut at CODE_READER_NAME_BYTES_MAX. Unwinding
 * information of one piece of code is kept up to CODE_READER_FRAMES_BYTES_MAX.
 */
#ifndef FIRN_AGENT_JIT_CODE_READER_H
#define FIRN_AGENT_JIT_CODE_READER_H

#include "agent/files/lender.h"
#include "agent/jit/code_map.h"
#include "agent/jit/code_rows.h"

#define CODE_READER_TURN_BYTES ((size_t)8 << 20)
#define CODE_READER_PERF_MAP_BYTES_MAX ((uint64_t)32 << 20)
#define CODE_READER_COPY_BYTES_MAX ((uint64_t)16 << 20) /* of a jitdump that is copied */
#define CODE_READER_NAME_BYTES_MAX 4096u
#define CODE_READER_SEEN_BYTES 256
#define CODE_READER_FRAMES_BYTES_MAX 4096u

enum code_format { CODE_PERF_MAP, CODE_JITDUMP };

struct code_file {
	int fd;
	uint64_t device, inode; /* of the file itself */
	bool is_copy;
	uint64_t copied_from; /* there is nothing before */
};

struct code_reader {
	enum code_format format;
	int fd; /* -1 = no file, or not open at present */
	bool is_copy;
	uint64_t copied_from;
	uint64_t device, inode;
	uint64_t offset;		      /* all before it was read */
	uint8_t seen[CODE_READER_SEEN_BYTES]; /* the bytes right before it */
	size_t seen_bytes;
	bool in_long_line;    /* of a perf map: what follows up to the newline is its rest */
	bool damaged;	      /* nothing more can be read of this jitdump */
	bool swapped;	      /* a jitdump in the other byte order */
	uint64_t source_code; /* what the file and line are about: the code loaded next */
	uint32_t source_line;
	struct strbuf source_file;
	struct code_rows *rows; /* borrowed; NULL = nobody wants to know how code is unwound */
	bool has_rows;		/* it is code of this machine */
	struct strbuf frames;	/* what is said of the code loaded next */
};

void code_reader_init(struct code_reader *reader, enum code_format format);
void code_reader_fini(struct code_reader *reader);

/* Takes ownership of the file, which may be the one read so far; fd -1 changes nothing. */
void code_reader_adopt(struct code_reader *reader, const struct code_file *file);

/* The part of the file that a copy of it must have. */
struct lender_part code_reader_wants(const struct code_reader *reader);

/* Closes the descriptor; the file is gone on with when it is adopted again. */
void code_reader_close(struct code_reader *reader);

/*
 * One turn. `base` (may be NULL) is what was built before, for code that moved. True when there is
 * more to read: because the turn was long enough, or the builder is full.
 */
bool code_reader_read(struct code_reader *reader, struct code_map_builder *builder,
		      const struct code_map *base);

#endif
