/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_optimized - which functions run at an address of code that V8's compilers (TurboFan, Maglev)
 * made: the one that was compiled, and those that are inlined there, with their lines.
 *
 *   address -> the head of its code, behind it in memory
 *           -> Code: source positions, deoptimization data
 *   a source position: a place in a script, and the number of an inlining (-1 = none)
 *   an inlining: its function, and the source position of the call
 *
 * So a position leads from the innermost function to the one that was compiled. V8 notes positions
 * of all code that it optimizes; an instruction has that of the last one at or before it.
 *
 * The head is recognised as an object whose map is that of code, and whose Code says that its
 * instructions begin right after it. At most V8_CODE_BYTES_MAX are searched. Of more than
 * V8_INLINED_MAX functions, those next to the compiled one are left out.
 *
 * Layouts: V8's src/objects/code.h, instruction-stream.h, deoptimization-data.h;
 * src/codegen/source-position.h and source-position-table.cc.
 *
 * One thread at a time. Everything that is read is bounded; malformed data gives no functions.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_OPTIMIZED_H
#define FIRN_AGENT_RUNTIME_V8_V8_OPTIMIZED_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/v8/v8_lines.h"

#define V8_CODE_BYTES_MAX (1u << 20)
#define V8_ALL_SURE SIZE_MAX
#define V8_INLINED_MAX 128 /* functions at one place, the compiled one included */

struct v8_function {
	uint64_t shared; /* address of what its closures share, as frames have it */
	uint32_t proof;	 /* of that (script_v8_proof) */
	uint32_t line;	 /* that runs; 0 = not known */
};

/* The functions that run at an address; count 0 = it is no optimized code. */
struct v8_place {
	size_t count;
	bool is_cut; /* some are missing behind the first */
	size_t sure; /* what is behind the first ones may be others, or missing */
	struct v8_function functions[]; /* outermost first */
};

/* `process` is for `lines`. The caller frees what it gets. */
struct v8_place *v8_optimized_read(const struct memory_reader *memory,
				   const struct v8_layout *layout, struct v8_lines *lines,
				   uint64_t process, uint64_t address);

bool v8_place_equals(const struct v8_place *one, const struct v8_place *other);

static inline size_t v8_place_bytes(const struct v8_place *place)
{
	return sizeof(*place) + place->count * sizeof(place->functions[0]);
}

#endif
