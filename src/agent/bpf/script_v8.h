/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_v8 - finds the functions of the frames of V8's generated code.
 *
 *   walk_place -> JSFunction -> SharedFunctionInfo
 *
 * Such a frame is on the native walk, which noted its function (v8.h). The function may move at the
 * next collection of garbage, what it shares with other closures of its kind hardly ever does: so
 * the latter is sent, with a proof of what it was and the frame's number. Of other generated code
 * the walk noted what its frame is, which is sent as a mark.
 *
 * Plain C, like script.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_V8_H
#define FIRN_AGENT_BPF_SCRIPT_V8_H

#include "agent/bpf/script.h"
#include "agent/bpf/v8.h"

/* What the closures of a function have in common, with its proof; more is 0 where it is none. */
static __always_inline const struct script_seen *script_v8_shared(struct script *script,
								  __u64 function)
{
	const struct script_v8_layout *layout = &script->process.v8;
	struct script_seen *seen;
	__u64 shared = 0;

	if (script_is_seen(script, function, SEEN_CODE, &seen) ||
	    walk_read(&shared, sizeof(shared), function - 1 + layout->shared))
		return seen;
	if (layout->is_compressed)
		shared = SCRIPT_V8_CAGE(function) | (__u32)shared;
	if (!v8_is_object(shared) ||
	    walk_read(script->proof, 8 * SCRIPT_V8_PROOF_WORDS, shared - 1 + layout->proof))
		return seen;
	shared = (shared - 1) << (layout->is_compressed & 1);
	script_keep(script, seen, script_v8_proof(script->proof, layout->is_compressed), shared,
		    shared);
	return seen;
}

#define SCRIPT_V8_STEPS                                                                            \
	8u /* frames in one go, at most: a call and its return cost as much as one */

/* The frame at a place of the walk. */
static __always_inline void script_v8_frame(struct script *script, const struct walk *walk,
					    __u32 index, struct sample *sample)
{
	const struct walk_place *place = &walk->places[row_masked(index, WALK_PLACES_MAX - 1)];
	__u64 number = (__u64)(place->at - sample->kernel_count) << SCRIPT_PLACE_SHIFT;
	const struct script_seen *seen;

	if (!v8_is_object(place->function)) {
		script_put(script, sample, number | SCRIPT_IS_MARK, place->function >> 1);
		return;
	}
	seen = script_v8_shared(script, place->function);
	if (seen->more)
		script_put(script, sample, number | seen->more,
			   seen->proof << 32 | place->position);
}

/* The frames of some places from `first` on. False when there are no more. */
static __always_inline bool script_v8_frames(struct script *script, const struct walk *walk,
					     __u32 first, struct sample *sample)
{
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < SCRIPT_V8_STEPS; i++) {
		if (first + i >= walk->places_count)
			return false;
		script_v8_frame(script, walk, first + i, sample);
	}
	return true;
}

#endif
