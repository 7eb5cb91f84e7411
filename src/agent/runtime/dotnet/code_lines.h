/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_lines - lines of generated code for the kernel's program (struct code_line in bpf/shared.h)
 * from the rows of the functions that lie in them. A line with more rows than it holds ends with
 * one that knows nothing.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_CODE_LINES_H
#define FIRN_AGENT_RUNTIME_DOTNET_CODE_LINES_H

#include "agent/runtime/dotnet/dotnet_process.h"

struct code_lines {
	struct dotnet_line *items;
	size_t count, capacity;
};

void code_lines_clear(struct code_lines *lines);
void code_lines_fini(struct code_lines *lines);

/* The line will be made; it may be noted more than once. */
void code_lines_note(struct code_lines *lines, uint64_t number);

/* Makes the lines that were noted. `functions`: by start, not overlapping. */
void code_lines_make(struct code_lines *lines, const struct dotnet_function *functions,
		     size_t count);

#endif
