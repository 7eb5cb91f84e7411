/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * v8 - unwinds V8's generated functions where they begin and end. Part of the walk (walk.h).
 *
 *   55 48 89 e5  push %rbp; mov %rsp,%rbp       c2, c3  ret, after
 *   56 57        push %rsi; push %rdi           48 83 f9 NN 7f 03  cmp $NN,%rcx; jg: too many
 *                                               41 5a ...  arguments, removed by hand
 *
 * Between these a function has the frame pointer; before and after them the register is still, or
 * again, the caller's, which would pass for the function. A function that was just called is in a
 * register (rdi); one that is about to return has left its frame where it was, below the stack
 * pointer. Small functions spend much of their time in such places.
 *
 * Below the frame pointer V8 keeps the function and, of interpreted ones, the place in its
 * bytecode. Other generated code (WebAssembly, regular expressions) has a small even number in
 * place of the context, which says what its frame is. The walk notes the one or the other, for
 * script_v8.h.
 */
#ifndef FIRN_AGENT_BPF_V8_H
#define FIRN_AGENT_BPF_V8_H

#include "agent/bpf/walk.h"

#define V8_CONTEXT (-8)	       /* from the frame pointer on: or the kind of a frame without one */
#define V8_KIND_MAX 256u       /* of a frame, doubled */
#define V8_STEPS 8	       /* frames left in one go, at most: calls and returns cost much */
#define V8_ENTRY_BYTES 24      /* of a function before it pushes the frame pointer, at most */
#define V8_REGISTER_FUNCTION 5 /* of DWARF's: rdi */

#define V8_PUSH_FP 0xe5894855u /* with the move that follows */
#define V8_MOVE_FP 0xe58948u
#define V8_PUSH_SLOTS 0x5756u
#define V8_PUSH_FUNCTION 0x5057u /* with a push of rax */
#define V8_COMPARE 0xf98348u
#define V8_JUMP_RETURN 0xc2037fu
#define V8_RETURN_BYTES 0xc2u
#define V8_POP_RETURN 0xcc248d485a41ull

/* An address with the tag of an object. */
static __always_inline bool v8_is_object(__u64 word)
{
	return (word & 3) == 1 && word >> SCRIPT_PLACE_SHIFT == 0;
}

/* Where in its bytecode an interpreted function is; what other code has there is something else. */
static __always_inline __u32 v8_position(struct walk *walk, __u64 fp)
{
	const struct script_v8_layout *layout = &walk->v8.layout;
	__u64 array, offset;

	return walk_word(walk, fp + (__s64)layout->bytecode_offset, &offset) &&
			       walk_word(walk, fp + (__s64)layout->bytecode_array, &array) &&
			       v8_is_object(array) && (__u32)offset == 0
		       ? (__u32)(offset >> 32)
		       : SCRIPT_V8_NO_POSITION;
}

/* The function that a frame is of, or the kind of one that has none. False: it is not V8's. */
static __always_inline bool v8_function(struct walk *walk, __u64 fp, bool is_generated, __u64 *ret)
{
	__u64 context;

	if (walk->v8.is_entry) {
		walk->v8.is_entry = false;
		return walk_interrupted(walk, V8_REGISTER_FUNCTION, ret) && v8_is_object(*ret);
	}
	if (!walk_word(walk, fp + (__s64)walk->v8.layout.function, ret) ||
	    !walk_word(walk, fp + V8_CONTEXT, &context))
		return false;
	if (v8_is_object(context))
		return v8_is_object(*ret);
	*ret = context;
	return is_generated && context < V8_KIND_MAX && !(context & 1);
}

static void walk_note_v8(struct walk *walk, __u64 fp, bool is_generated)
{
	__u32 position = SCRIPT_V8_NO_POSITION;
	__u64 function;

	if (!is_generated)
		position = v8_position(walk, fp);
	if (v8_function(walk, fp, is_generated, &function))
		walk_note_place(walk, function, position);
}

/* What the walk does with the innermost function. */
enum v8_edge {
	V8_INSIDE, /* it has its frame */
	V8_ENTRY,  /* nothing is pushed but the return address */
	V8_PUSHED, /* the frame pointer is */
	V8_END,	   /* only the return address is left */
};

/* Eight bytes of the code from pc on. */
static __always_inline __u64 v8_code(const struct walk *walk, __u32 at)
{
	__u64 low = walk->v8.code[at / 8] >> 8 * (at & 7);

	return at & 7 ? low | walk->v8.code[at / 8 + 1] << (64 - 8 * (at & 7)) : low;
}

/* How far the function's push of the frame pointer is; V8_ENTRY_BYTES = it is not there. */
static __always_inline __u32 v8_to_push(const struct walk *walk)
{
	WALK_UNROLL
	for (__u32 at = 0; at < V8_ENTRY_BYTES; at++) {
		if ((__u32)v8_code(walk, at) == V8_PUSH_FP)
			return at;
	}
	return V8_ENTRY_BYTES;
}

static __always_inline bool v8_is_end(__u64 code)
{
	return (code & 0xff) == CODE_RET || (code & 0xff) == V8_RETURN_BYTES ||
	       (code & 0xffffff) == V8_JUMP_RETURN ||
	       ((code & 0xffffff) == V8_COMPARE && (code >> 32 & 0xffffff) == V8_JUMP_RETURN) ||
	       (code & 0xffffffffffff) == V8_POP_RETURN;
}

/* Of the interrupted function. Sets whether it is JavaScript whose frame does not have it yet. */
static __always_inline enum v8_edge v8_edge(const struct walk *walk, bool *ret_is_entry)
{
	__u64 code = v8_code(walk, 0);
	__u32 to_push;

	*ret_is_entry = false;
	if (v8_is_end(code))
		return V8_END;
	if ((code & 0xffffff) == V8_MOVE_FP) {
		*ret_is_entry = (code >> 24 & 0xffff) == V8_PUSH_SLOTS;
		return V8_PUSHED;
	}
	if ((code & 0xffff) == V8_PUSH_SLOTS || (code & 0xffff) == V8_PUSH_FUNCTION) {
		*ret_is_entry = true;
		return V8_INSIDE;
	}
	to_push = v8_to_push(walk);
	if (to_push == V8_ENTRY_BYTES)
		return V8_INSIDE;
	*ret_is_entry = (v8_code(walk, to_push) >> 32 & 0xffff) == V8_PUSH_SLOTS;
	return V8_ENTRY;
}

/* To the caller, whose frame pointer is known. */
static __always_inline enum stack_end v8_leave(struct walk *walk, enum v8_edge edge)
{
	__u64 at = walk->sp;

	trail_break(&walk->trail);
	walk->saved.fp = walk->fp;
	if (edge == V8_PUSHED) {
		if (!walk_word(walk, at, &walk->saved.fp))
			return STACK_UNREADABLE;
		at += 8;
	}
	if (!walk_word(walk, at, &walk->saved.pc))
		return STACK_UNREADABLE;
	if (walk->v8.is_entry || edge == V8_END)
		walk_note_v8(walk, walk->sp - 8, true);
	walk->cfa = at + 8;
	walk->bx_known = false;
	walk->by_pointer++;
	return walk_arrive(walk, true);
}

WALK_VERIFIED_ONCE enum stack_end walk_out_of_v8_leaf(struct walk *walk)
{
	enum v8_edge edge;

	if (!walk)
		return STACK_UNREADABLE;
	if (walk_read(walk->v8.code, sizeof(walk->v8.code), walk->pc))
		return walk_out_of_generated(walk);
	edge = v8_edge(walk, &walk->v8.is_entry);
	if (edge != V8_INSIDE)
		return v8_leave(walk, edge);
	walk->by_generated = true;
	return walk_by_pointer(walk, STACK_NO_FRAME_POINTER);
}

/* What has called something has its frame, for sure: its code need not be looked at. */
static __always_inline enum stack_end walk_out_of_v8(struct walk *walk)
{
	walk->v8.is_entry = false;
	if (walk->full)
		return walk_out_of_v8_leaf(walk);
	walk->by_generated = true;
	return walk_by_pointer(walk, STACK_NO_FRAME_POINTER);
}

/* Leaves the frame at hand, which the sample has, and those outside of it that are like it. */
static enum stack_end walk_along_v8(struct walk *walk, struct sample *sample)
{
	enum stack_end end = walk_out_of_v8(walk);

	WALK_KEEP_LOOP
	for (int i = 0; i < V8_STEPS; i++) {
		__u32 at = walk->at;

		if (end != STACK_ENDS || walk->room == 0 || at >= SAMPLE_FRAMES_MAX ||
		    !walk_is_in(walk, &walk->brief))
			break;
		sample->frames[at] = walk->pc;
		walk->at = at + 1;
		walk->room--;
		end = walk_along_pointer(walk, STACK_NO_FRAME_POINTER);
	}
	return end;
}

#endif
