/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_exits - the places where V8 may leave optimized code, because something is not as it was when
 * the code was made. Each has a translation (v8_translation), which says what functions run there.
 *
 * V8 leaves the code where a call returns: TurboFan's exits say themselves where that is, Maglev's
 * in a table behind the code (v8_safepoints). Or a check fails and jumps (0f 8X, and how far) to
 * its exit: calls of V8_EXIT_BYTES behind the code, in the exits' order. Each turn of a loop looks
 * whether it is to be interrupted, by a jump to a slow part, which calls something and jumps back:
 * behind the check, or to the beginning of the loop, which is then known, too.
 *
 * So of most instructions it is known what was checked before, and what is checked next, in the
 * same loop. What lies between checks of two functions belongs to one of them, and nothing says
 * which.
 *
 * Layouts: V8's src/objects/deoptimization-data.h, src/deoptimizer/x64/deoptimizer-x64.cc.
 *
 * One thread at a time. Everything is bounded; malformed data has no exits.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_EXITS_H
#define FIRN_AGENT_RUNTIME_V8_V8_EXITS_H

#include "agent/runtime/v8/v8_object.h"

#define V8_EXIT_BYTES 4u
#define V8_EXITS_MAX (1u << 14)
#define V8_CHECKS_NEAR 2u /* one before, one behind */

struct v8_exit {
	uint32_t translation;
	uint32_t at; /* in the code: where its call returns to, or its own code; -1 */
};

/* A place in the code that a call returns to. */
struct v8_call {
	uint32_t place, exit;
};

struct v8_exits {
	struct v8_exit *exits; /* those that checks jump to are the first */
	uint32_t count, checked_count;
	uint32_t code_at; /* where in the code that of the first one is */
	struct v8_call *calls;
	uint32_t calls_count;
};

/* Optimized code in a process, and the word of its deoptimization data. */
struct v8_exits_source {
	const struct memory_reader *memory;
	const struct v8_layout *layout;
	uint64_t data, start, size;
};

/* False: there are none. The caller frees them. */
bool v8_exits_read(const struct v8_exits_source *source, struct v8_exits *ret);

void v8_exits_free(struct v8_exits *exits);

/* The translation of the call that returns to an offset in the code, or to the byte behind it. */
bool v8_exits_find_call(const struct v8_exits *exits, uint64_t offset, uint32_t *ret_translation);

/* Translations of the checks next to an offset, the one behind it first. Returns how many. */
size_t v8_exits_find_checks(const struct v8_exits *exits, const uint8_t *code, size_t len,
			    size_t offset, uint32_t ret_translations[V8_CHECKS_NEAR]);

#endif
