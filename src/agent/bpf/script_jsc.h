/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_jsc - finds the functions of the frames of JavaScriptCore (Bun).
 *
 *   frame pointer -> {caller's frame pointer, return address, CodeBlock, callee, count}
 *   callee (a function) -> its executable -- must be -- CodeBlock -> its executable
 *
 * All its code, interpreted or compiled, has the frame pointer at such a frame. It is on the native
 * walk, which noted it (walk_place). Words that lie so in a frame of C++ are no frame of a
 * function: what they point at is a CodeBlock by its kind, and the callee's is the same executable;
 * what runs at the top of a file has a callee of a kind of its own instead.
 *
 * The CodeBlock is sent, which does not move, with a proof of its pointers and the frame's number.
 * The position is the number of the call that the frame is in (its call site), which the frame
 * keeps beside the count of arguments.
 *
 * Plain C, like script.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_JSC_H
#define FIRN_AGENT_BPF_SCRIPT_JSC_H

#include "agent/bpf/script.h"

#define SCRIPT_JSC_FRAME 16 /* from the frame pointer on */
#define SCRIPT_JSC_FRAME_BYTES 24
#define SCRIPT_JSC_RARE 1u /* of a function's word: its executable is in what it points at */
#define SCRIPT_JSC_ARGUMENTS_MAX (1u << 20)

static __always_inline bool script_jsc_is_cell(__u64 word)
{
	return word >= 4096 && !(word & 7) && word >> 47 == 0;
}

/* The kind of a cell, by its first word. */
static __always_inline __u8 script_jsc_kind(__u64 head)
{
	return head >> 40;
}

/* The callee's executable; 0 = it is not there. */
static __always_inline __u64 script_jsc_executable(const struct script *script, __u64 callee)
{
	const struct script_jsc_layout *layout = &script->process.jsc;
	__u64 word = 0;

	if (walk_read(&word, sizeof(word), callee + layout->executable))
		return 0;
	if (!(word & SCRIPT_JSC_RARE))
		return word;
	if (walk_read(&word, sizeof(word), word - SCRIPT_JSC_RARE + layout->rare_executable))
		return 0;
	return word;
}

/* A function whose executable is the code's, or the callee of what runs at the top of a file. */
static __always_inline bool script_jsc_belongs(const struct script *script, __u64 callee,
					       __u64 owner)
{
	const struct script_jsc_layout *layout = &script->process.jsc;
	__u64 head = 0, kind;

	if (walk_read(&head, sizeof(head), callee))
		return false;
	if (script_jsc_kind(head) == layout->callee_kind) {
		if (walk_read(&head, sizeof(head), owner))
			return false;
		kind = script_jsc_kind(head);
		return kind >= layout->top_kind && kind < layout->top_kind + SCRIPT_JSC_TOP_KINDS;
	}
	return script_jsc_kind(head) == layout->callee_kind + 1 &&
	       script_jsc_executable(script, callee) == owner;
}

/* What was read of a CodeBlock, with its proof; `more` is the callee that it belongs to, or 0. */
static __always_inline const struct script_seen *script_jsc_code(struct script *script, __u64 code,
								 __u64 callee)
{
	const struct script_jsc_layout *layout = &script->process.jsc;
	const __u64 *words = script->words;
	struct script_seen *seen;
	__u64 owner;

	if (script_is_seen(script, code, SEEN_CODE, &seen) && seen->more == callee)
		return seen;
	seen->proof = seen->more = 0;
	if (walk_read(script->words, sizeof(script->words), code) ||
	    script_jsc_kind(words[0]) != layout->code_kind)
		return seen;
	owner = script_word_of(words, layout->owner);
	if (!script_jsc_is_cell(owner) || !script_jsc_belongs(script, callee, owner))
		return seen;
	script->proof[0] = script_word_of(words, layout->owner - 8u);
	script->proof[1] = owner;
	script->proof[2] = script_word_of(words, layout->owner + 8u);
	script->proof[3] = script_word_of(words, layout->jit);
	script_keep(script, seen, script_proof(script->proof), callee, code);
	return seen;
}

/* The frame with this frame pointer, the native one of this number, if it is one of a function. */
static __always_inline void script_jsc_frame(struct script *script, __u64 fp, __u32 number,
					     struct sample *sample)
{
	__u64 at = fp + SCRIPT_JSC_FRAME, code, callee, count;
	const struct script_seen *seen;
	const __u64 *frame;

	if (!script_window_read(&script->frames, at, SCRIPT_JSC_FRAME_BYTES, SCRIPT_OUTWARDS_IS_UP))
		return;
	frame = script_window_at(&script->frames, at);
	code = frame[0];
	callee = frame[1];
	count = frame[2];
	if (!script_jsc_is_cell(code) || !script_jsc_is_cell(callee) ||
	    (__u32)count - 1 >= SCRIPT_JSC_ARGUMENTS_MAX)
		return;
	seen = script_jsc_code(script, code, callee);
	if (seen->more)
		script_put(script, sample, (__u64)number << SCRIPT_PLACE_SHIFT | code,
			   seen->proof << 32 | count >> 32);
}

#endif
