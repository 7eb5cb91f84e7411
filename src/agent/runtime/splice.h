/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splice - puts the frames of an interpreter between the native ones.
 *
 * Each native frame of the interpreter's loop runs one run of interpreter frames, and both lists
 * are in order, so they are paired by count. If the counts differ:
 *
 *   the native walk was cut     runs beyond its loops are outside of all that it shows; so where
 *                               there are marks of SCRIPT_OTHER_STACK
 *   more loops than runs        the outermost ones belong to other stacks (greenlets, other
 *                               interpreters): a gap stands in the first one. One more may be the
 *                               loop of the innermost frame, which has not begun its run yet, or
 *                               has ended it. Notes of the frames, and where a stack was switched,
 *                               tell which
 *   the outermost run is empty  no loop runs it: CPython 3.15 has a frame outside of all
 *   a run more than loops       its loop was not recognised: it is put innermost; or, where the
 *                               outermost has no end, that is of native functions that were called
 *                               without a loop: outside of all
 *   more runs than that         they are put innermost, inside of a gap: between which native
 *                               frames they belong is not known
 */
#ifndef FIRN_AGENT_RUNTIME_SPLICE_H
#define FIRN_AGENT_RUNTIME_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/bpf/shared.h"

#define SPLICE_STEPS_MAX (SAMPLE_FRAMES_MAX + SCRIPT_FRAMES_MAX + 2)

struct splice_step {
	bool is_native;
	bool is_gap;	/* neither: here are functions that are not known */
	uint16_t index; /* of the native frame, or of the interpreter's */
};

struct splice_natives {
	const bool *loops; /* native frame i (innermost first) is in the loop */
	size_t count;
	size_t inside; /* so many innermost ones are on a stack that was switched to; or `count` */
	bool is_complete;
};

/*
 * `words`: two for each frame of the interpreter (bpf/shared.h). Fills `steps`, outermost first,
 * and returns how many.
 */
size_t splice_frames(const struct splice_natives *natives, const uint64_t *words,
		     size_t script_count, struct splice_step *steps);

/* How many runs there are inside of the first mark of SCRIPT_OTHER_STACK; SIZE_MAX = there is none.
 */
size_t splice_runs_on_stack(const uint64_t *words, size_t script_count);

enum splice_native {
	SPLICE_FOREIGN,	  /* code that has nothing to do with the runtime */
	SPLICE_RUNTIME,	  /* the runtime's own: its interpreter, or what its code calls */
	SPLICE_GENERATED, /* made by the runtime */
};

/*
 * The same for a runtime whose functions have native frames of their own; `words` say which
 * (SCRIPT_PLACE_SHIFT). A function replaces a native frame of generated code, and comes inside of
 * one of the interpreter. Steps of kept native frames come before those of their functions.
 */
size_t splice_places(const uint8_t *natives, size_t native_count, const uint64_t *words,
		     size_t script_count, struct splice_step *steps);

#endif
