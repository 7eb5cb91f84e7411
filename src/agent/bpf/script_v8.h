/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_v8 - finds the functions of the frames of V8's generated code.
 *
 *   frame pointer -> JSFunction -> SharedFunctionInfo
 *
 * Such a frame is on the native walk, which noted its frame pointer (walk_place). Below that V8
 * keeps the function and, of interpreted ones, the place in its bytecode. The function may move at
 * the next collection of garbage, what it shares with other closures of its kind hardly ever does:
 * so the latter is sent, with a proof of what it was and the frame's number. Other generated code
 * (WebAssembly, regular expressions) has a number in the same place that says what its frame is,
 * which is sent as a mark.
 *
 * Plain C, like script.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_V8_H
#define FIRN_AGENT_BPF_SCRIPT_V8_H

#include "agent/bpf/script.h"
#include "agent/bpf/v8.h"

#define SCRIPT_V8_CONTEXT (-8) /* from the frame pointer on: or the kind of a frame without one */
#define SCRIPT_V8_SLOTS_MAX 128u
#define SCRIPT_V8_KIND_MAX 256u /* of a frame, doubled */

static __always_inline bool script_v8_is_object(__u64 word)
{
	return (word & 3) == 1 && word >> SCRIPT_PLACE_SHIFT == 0;
}

/* A word of what read_slots returns. */
static __always_inline __u64 script_v8_slot(const struct script *script, const __u64 *slots,
					    __s32 at)
{
	return script_word_of(slots, (__u32)(at - script->process.v8.bytecode_offset));
}

/* What is below a frame pointer; NULL = it cannot be read. */
static __always_inline const __u64 *script_v8_read_slots(struct script *script, __u64 fp)
{
	__s32 lowest = script->process.v8.bytecode_offset;
	__u32 bytes = (__u32)-lowest & (SCRIPT_V8_SLOTS_MAX - 8);
	__u64 at = fp + (__s64)lowest;

	if (!script_window_read(&script->frames, at, bytes, SCRIPT_OUTWARDS_IS_UP))
		return NULL;
	return script_window_at(&script->frames, at);
}

/* Where in its bytecode an interpreted function is; what other code has there is something else. */
static __always_inline __u32 script_v8_position(const struct script *script, const __u64 *slots)
{
	__u64 array = script_v8_slot(script, slots, script->process.v8.bytecode_array);
	__u64 offset = script_v8_slot(script, slots, script->process.v8.bytecode_offset);

	return script_v8_is_object(array) && (__u32)offset == 0 ? (__u32)(offset >> 32)
								: SCRIPT_V8_NO_POSITION;
}

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
	if (!script_v8_is_object(shared) ||
	    walk_read(script->proof, 8 * SCRIPT_V8_PROOF_WORDS, shared - 1 + layout->proof))
		return seen;
	shared = (shared - 1) << (layout->is_compressed & 1);
	script_keep(script, seen, script_v8_proof(script->proof, layout->is_compressed), shared,
		    shared);
	return seen;
}

/* The function that a place of the walk runs. */
static __always_inline void script_v8_function(struct script *script, struct sample *sample,
					       __u32 place, __u64 function, __u32 position)
{
	const struct script_seen *seen;

	if (!script_v8_is_object(function))
		return;
	seen = script_v8_shared(script, function);
	if (seen->more)
		script_put(script, sample, (__u64)place << SCRIPT_PLACE_SHIFT | seen->more,
			   seen->proof << 32 | position);
}

/* The frame at a place of the walk, if it is one of a function. */
static __always_inline void script_v8_frame(struct script *script, struct walk *walk, __u32 index,
					    struct sample *sample)
{
	const struct walk_place *place = &walk->places[row_masked(index, WALK_PLACES_MAX - 1)];
	__u32 number = place->at - sample->kernel_count;
	__u64 context, function;
	const __u64 *slots;

	if (place->is_entry) {
		if (walk_interrupted(walk, V8_REGISTER_FUNCTION, &function))
			script_v8_function(script, sample, number, function, SCRIPT_V8_NO_POSITION);
		return;
	}
	slots = script_v8_read_slots(script, place->fp);
	if (!slots)
		return;
	context = script_v8_slot(script, slots, SCRIPT_V8_CONTEXT);
	if (script_v8_is_object(context))
		script_v8_function(script, sample, number,
				   script_v8_slot(script, slots, script->process.v8.function),
				   place->is_generated ? SCRIPT_V8_NO_POSITION
						       : script_v8_position(script, slots));
	else if (place->is_generated && context < SCRIPT_V8_KIND_MAX && !(context & 1))
		script_put(script, sample, (__u64)number << SCRIPT_PLACE_SHIFT | SCRIPT_IS_MARK,
			   context >> 1);
}

#endif
