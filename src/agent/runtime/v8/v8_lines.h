/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_lines - from a place in a script's source to its line.
 *
 * V8 makes a table of lines only on demand, so this counts them: the source is read once, in
 * pieces, and the ends of lines are kept for the last V8_LINES_SCRIPTS scripts. Sources over
 * V8_LINES_SOURCE_MAX characters or V8_LINES_MAX lines have no lines.
 *
 * One thread at a time.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_LINES_H
#define FIRN_AGENT_RUNTIME_V8_V8_LINES_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/v8/v8_layout.h"

#define V8_LINES_SCRIPTS 8
#define V8_LINES_MAX (1u << 18)
#define V8_LINES_SOURCE_MAX (1u << 24)

struct v8_script_lines {
	uint64_t process; /* anything that tells it from others */
	uint64_t source;
	uint64_t print; /* of its length, its beginning and its end: strings move */
	uint32_t *ends; /* places of the characters that end lines */
	uint32_t count;
	bool has_too_many; /* lines: none are kept */
};

struct v8_lines {
	struct v8_script_lines scripts[V8_LINES_SCRIPTS];
	uint32_t next; /* the one that is given up next */
};

void v8_lines_fini(struct v8_lines *lines);

/* `source` is a string. The line counted from 1; 0 = not known. */
uint32_t v8_lines_find(struct v8_lines *lines, uint64_t process, const struct memory_reader *memory,
		       const struct v8_layout *layout, uint64_t source, uint32_t position);

/* The same of a script, whose source may begin with another line than the first. */
uint32_t v8_lines_of_script(struct v8_lines *lines, uint64_t process,
			    const struct memory_reader *memory, const struct v8_layout *layout,
			    uint64_t script, uint32_t position);

#endif
