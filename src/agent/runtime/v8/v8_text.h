/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_text - reads strings of V8 out of a process, as UTF-8.
 *
 * A string may join two others, be a piece of another, or refer to another: at most
 * V8_TEXT_PIECES_MAX pieces are followed, and V8_TEXT_MAX characters read. Longer strings are cut.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_TEXT_H
#define FIRN_AGENT_RUNTIME_V8_V8_TEXT_H

#include <stdbool.h>

#include "agent/runtime/v8/v8_object.h"
#include "base/strbuf.h"

#define V8_TEXT_MAX 1024u
#define V8_TEXT_PIECES_MAX 64

/* False when there is no string, or it has gone. */
bool v8_text_read(const struct memory_reader *memory, const struct v8_layout *layout, uint64_t word,
		  struct strbuf *out);

/* A string whose characters lie in one piece. */
struct v8_flat {
	uint64_t at;
	uint32_t count;
	bool is_narrow; /* characters of one byte, otherwise of two */
};

/* False if there is no such string; references are followed V8_FLAT_HOPS_MAX times. */
#define V8_FLAT_HOPS_MAX 4
bool v8_text_find(const struct memory_reader *memory, const struct v8_layout *layout, uint64_t word,
		  struct v8_flat *ret);

#endif
