/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_rows - how the generated code of one process is unwound, as its jitdump says: lines of rows
 * for the kernel's program (struct code_line in bpf/shared.h) from records with an .eh_frame.
 *
 * What comes last to an address holds for it. What a row cannot say is left unknown: such code is
 * left as code without a line is.
 *
 * What LLVM tells at once of many pieces of code holds while those are loaded, next. Known mistake:
 * code without unwinding information that comes to their place later has their rows, until more is
 * told.
 *
 * The process writes what it likes; rows that are wrong make its own stacks wrong. Bounds:
 * CODE_ROWS_LINES_MAX lines, CODE_ROWS_BYTES_MAX of code and CODE_ROWS_FUNCTIONS_MAX functions told
 * at once, and CODE_ROWS_WORK_MAX lines in a turn, over by one record at most. One thread at a
 * time.
 */
#ifndef FIRN_AGENT_JIT_CODE_ROWS_H
#define FIRN_AGENT_JIT_CODE_ROWS_H

#include "agent/bpf/shared.h"
#include "base/idmap.h"
#include "codec/process/jitdump.h"

#define CODE_ROWS_LINES_MAX 32768u
#define CODE_ROWS_BYTES_MAX ((uint64_t)CODE_ROWS_LINES_MAX << CODE_LINE_SHIFT)
#define CODE_ROWS_FUNCTIONS_MAX 8192u
#define CODE_ROWS_WORK_MAX CODE_ROWS_LINES_MAX

struct code_rows_line {
	uint64_t number;
	struct code_line line;
	bool is_known;	 /* one of its rows says something */
	bool is_changed; /* since the last code_rows_take_changes */
	bool is_taken;	 /* whoever took the changes has it */
};

/* Zero-initialised is empty and valid, with room for no line. */
struct code_rows {
	struct code_rows_line *items;
	size_t count, capacity;
	struct idmap by_number;
	size_t room; /* lines that it may have */
	size_t work; /* in this turn */
	bool is_changed;
	uint64_t told_start, told_end; /* of the code that LLVM told last */
};

void code_rows_fini(struct code_rows *rows);

/* Begins a turn, with room for so many lines in all, if that is not over CODE_ROWS_LINES_MAX. */
void code_rows_begin(struct code_rows *rows, size_t room);

/* The turn has been long enough. */
bool code_rows_is_spent(const struct code_rows *rows);

/* Code was loaded; `frames` is what the record before said of it, or empty. */
void code_rows_load(struct code_rows *rows, const struct jitdump_code *code, struct slice frames);

/* Of the code that is loaded next: `unwinding` with an address. */
void code_rows_tell(struct code_rows *rows, const struct jitdump_unwinding *unwinding);

/* All functions in a block of code (CODE_BLOCK_SHIFT) have a frame, or that is not known any more.
 */
void code_rows_put_block(struct code_rows *rows, uint64_t block, bool is_framed);

/* Nothing is known any more, but of blocks. */
void code_rows_forget(struct code_rows *rows);
void code_rows_forget_blocks(struct code_rows *rows);

typedef void code_rows_put_f(void *context, uint64_t number, const struct code_line *line);

/*
 * What is new since the last time, `max` lines at most; a line of NULL is one that is there no
 * more. Returns how many there were. Is there more, rows->is_changed stays.
 */
size_t code_rows_take_changes(struct code_rows *rows, size_t max, code_rows_put_f *put,
			      void *context);

size_t code_rows_bytes(const struct code_rows *rows); /* memory */

#endif
