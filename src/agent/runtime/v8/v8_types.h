/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_types - the kinds of V8's objects, which are numbers that change with each version.
 *
 * Where the file does not say them (V8 without its tables for debuggers), each function that its
 * closures share (SharedFunctionInfo) tells them, by what it refers to: a name or a scope, whose
 * kind is two below its own in all versions of v8_versions; and a script, which has a name, a
 * source and a line. A handful of reads.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_TYPES_H
#define FIRN_AGENT_RUNTIME_V8_V8_TYPES_H

#include <stdbool.h>

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/v8/v8_layout.h"

/*
 * True if a word points at what the closures of a function share. Sets the kinds in the layout if
 * they are unknown: of a function without a script 0 as that of scripts.
 */
bool v8_types_find(const struct memory_reader *memory, struct v8_layout *layout, uint64_t shared);

/* True if a kind of object is the wanted one, which may be V8_ANY_TYPE. */
static inline bool v8_type_is(uint16_t type, uint16_t wanted)
{
	return type == wanted || (wanted == V8_ANY_TYPE && type != V8_NO_FIELD);
}

#endif
