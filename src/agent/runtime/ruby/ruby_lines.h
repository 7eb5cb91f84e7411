/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby_lines - from a program counter in Ruby's instructions to its line.
 *
 * Ruby keeps entries of lines and a succinct index from instructions to entries. Both become a
 * line_table (line_table.h).
 */
#ifndef FIRN_AGENT_RUNTIME_RUBY_RUBY_LINES_H
#define FIRN_AGENT_RUNTIME_RUBY_RUBY_LINES_H

#include "agent/runtime/memory_reader.h"
#include "base/slice.h"

#define RUBY_WORDS_MAX 65536u /* of instructions; longer ones have no lines */
#define RUBY_LINES_MAX 8192u

/* What the body of instructions says of its lines. */
struct ruby_line_source {
	uint64_t code; /* where the instructions begin */
	uint64_t entries, index;
	uint32_t words, entries_count;
	uint32_t entry_bytes;
};

/* The table, the caller's, or NULL. */
uint8_t *ruby_lines_read(const struct memory_reader *memory, const struct ruby_line_source *source,
			 size_t *ret_len);

/*
 * `pc`: the low half of the program counter, which is behind the word that runs, or at the first.
 * 0 = not in these instructions, or not known.
 */
uint32_t ruby_line(struct slice table, uint32_t pc);

#endif
