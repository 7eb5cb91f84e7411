/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_safepoints - the table behind the instructions of code that Maglev made: for the places that
 * calls return to, the exit by which V8 leaves the code there.
 *
 *   [a number], how many, what the fields take, numbers; then for each place, in order:
 *   where it is, its exit + 1, where the exit's code is + 1, registers
 *
 * Whether the first number is there depends on the version; whoever uses an exit compares where its
 * code is with what the deoptimization data say of it. Layout: V8's
 * src/codegen/maglev-safepoint-table.h.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_SAFEPOINTS_H
#define FIRN_AGENT_RUNTIME_V8_V8_SAFEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define V8_SAFEPOINTS_HEAD_BYTES 16u
#define V8_SAFEPOINTS_FORMS 2u
#define V8_SAFEPOINTS_BYTES_MAX (1u << 18)

struct v8_safepoints {
	uint32_t count, place_bytes, exit_bytes, entry_bytes;
};

struct v8_safepoint {
	uint32_t place; /* that a call returns to */
	uint32_t exit, exit_at;
};

/* False if the head is none of this form, or no place has an exit. */
bool v8_safepoints_open(const uint8_t head[V8_SAFEPOINTS_HEAD_BYTES], uint32_t form,
			struct v8_safepoints *ret);

static inline size_t v8_safepoints_bytes(const struct v8_safepoints *points)
{
	return (size_t)points->count * points->entry_bytes;
}

/* One of `count`; the entries are v8_safepoints_bytes. False if it has no exit. */
bool v8_safepoints_get(const struct v8_safepoints *points, const uint8_t *entries, uint32_t number,
		       struct v8_safepoint *ret);

#endif
