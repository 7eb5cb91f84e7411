/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lua - unwinds LuaJIT's interpreter and the machine code of its traces, one frame at a time. Part
 * of the walk (walk.h), and like it plain C over hostile memory.
 *
 * The interpreter is one function in assembly. Each call of it from C has a frame of fixed size,
 * which names the thread (lua_State) that runs in it; the thread names its innermost such frame,
 * and each frame the one outside of it. Traces run in the frame of the interpreter that entered
 * them, some words below, and use rbp for anything. So, wherever in either the walk is: the frame
 * is the first place on the stack that names a thread which has its frame right there.
 *
 *   at + 0x10  thread           + 0x38  rbx           + 0x48  return address
 *      + 0x20  frame outside    + 0x40  rbp           (of x86-64 with 64-bit references)
 *
 * Generated code may be another library's (PCRE's): it is a trace only if the trace that the thread
 * is said to run lies around it, or near. For each frame a place is noted, with the registers that
 * may tell its Lua function: what of them is so, script_lua.h finds out.
 */
#ifndef FIRN_AGENT_BPF_LUA_H
#define FIRN_AGENT_BPF_LUA_H

#include "agent/bpf/walk.h"

#define LUA_FRAME_BYTES 80u
#define LUA_FRAME_THREAD 0x10u
#define LUA_FRAME_OUTER 0x20u
#define LUA_FRAME_BX 0x38u
#define LUA_FRAME_FP 0x40u
#define LUA_FRAME_RETURN 0x48u
#define LUA_FRAME_FLAGS 3ull /* in the address of a frame */

#define LUA_SCAN_WORDS 192    /* of a trace's own frame, or of what its exit saves */
#define LUA_ENTRY_WORDS 5     /* that the interpreter pushes, with the return address */
#define LUA_CHAIN_MAX 4	      /* frames of one thread between which others' lie */
#define LUA_AREA_BYTES 65536u /* of machine code, that is made in one piece */
#define LUA_TRACES_MAX 65536
#define LUA_TRACES_SOUGHT 64

#define LUA_REGISTER_BASE 1 /* of DWARF's: rdx */

#define LUA_OBJECT_KIND_SHIFT 8 /* in the second word of an object */
#define LUA_IS_THREAD 6u
#define LUA_POINTER_END (1ull << 47)

/* True if the word may be the address of an object. */
static __always_inline bool lua_may_be_object(__u64 word)
{
	return !(word & 7) && word >= USER_ADDRESS_MIN && word < LUA_POINTER_END;
}

/* True if the thread's frames, from its innermost outwards, have one there. */
WALK_VERIFIED_ONCE bool lua_has_frame(struct walk *walk, __u64 thread, __u64 at)
{
	struct walk_lua *lua = walk ? &walk->lua : NULL;
	__u64 frame = 0;

	if (!lua)
		return false;
	if (thread == lua->thread)
		return lua->outer == at;
	if (walk_read(lua->words, 16, thread) ||
	    (__u8)(lua->words[1] >> LUA_OBJECT_KIND_SHIFT) != LUA_IS_THREAD ||
	    walk_read(&frame, sizeof(frame), thread + lua->layout.frame))
		return false;
	WALK_KEEP_LOOP
	for (int i = 0; i < LUA_CHAIN_MAX; i++) {
		frame &= ~LUA_FRAME_FLAGS;
		if (frame == at)
			return true;
		if (frame > at || walk_read(&frame, sizeof(frame), frame + LUA_FRAME_OUTER))
			return false;
	}
	return false;
}

/* Looks for the frame, from the stack pointer on; false when none of so many words is it. */
WALK_VERIFIED_ONCE bool lua_find_frame(struct walk *walk, __u32 words, __u64 *ret_thread)
{
	__u64 thread = 0;

	if (!walk || !ret_thread)
		return false;
	walk->cfa = walk->sp;
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < LUA_SCAN_WORDS; i++) {
		if (i >= words || !walk_word(walk, walk->cfa + LUA_FRAME_THREAD, &thread))
			return false;
		if (lua_may_be_object(thread) && lua_has_frame(walk, thread, walk->cfa)) {
			*ret_thread = thread;
			return true;
		}
		walk->cfa += 8;
	}
	return false;
}

/* Reads where the code of a trace is: its length, in the first word's high half, and its start. */
static __always_inline bool lua_read_trace(struct walk *walk, __u64 traces, __u32 number)
{
	walk->lua.trace = 0;
	return !walk_read(&walk->lua.trace, 8, traces + 8ull * number) && walk->lua.trace &&
	       !walk_read(walk->lua.words, 16, walk->lua.trace + walk->lua.layout.code - 8);
}

/* True if pc is in the code that was read. */
static __always_inline bool lua_is_in_trace(struct walk *walk)
{
	walk->lua.offset = walk->pc - walk->lua.words[1];
	return walk->pc - walk->lua.words[1] < walk->lua.words[0] >> 32;
}

/* What is said of the trace that runs is old where one enters another, and nothing while garbage is
 * collected. */
WALK_VERIFIED_ONCE bool lua_seek_trace(struct walk *walk, __u64 traces)
{
	if (!walk)
		return false;
	WALK_KEEP_LOOP
	for (__u32 i = 1; i < LUA_TRACES_SOUGHT; i++)
		if (lua_read_trace(walk, traces, i) && lua_is_in_trace(walk))
			return true;
	return false;
}

/* True if the thread runs a trace and pc is in the code of it, or of one that lies near. */
WALK_APART bool lua_is_trace(struct walk *walk, __u64 thread)
{
	const struct script_lua_layout *layout = &walk->lua.layout;
	__u64 shared = 0, base = 0, traces = 0;
	bool is_near = false;
	__s32 number = 0;

	if (walk_read(&shared, sizeof(shared), thread + layout->shared) ||
	    walk_read(&base, sizeof(base), shared + layout->trace_base) || !base ||
	    walk_read(&number, sizeof(number), shared + layout->state) ||
	    number >= LUA_TRACES_MAX || walk_read(&traces, sizeof(traces), shared + layout->traces))
		return false;
	if (number > 0 && lua_read_trace(walk, traces, number)) {
		if (lua_is_in_trace(walk))
			return true;
		is_near = walk->pc - walk->lua.words[1] + LUA_AREA_BYTES < 2 * LUA_AREA_BYTES;
	}
	if (lua_seek_trace(walk, traces))
		return true;
	walk->lua.trace = 0;
	return is_near;
}

/* Notes a frame, for script_lua.h: those of other code as well, as each has a run. */
WALK_APART void lua_note_place(struct walk *walk, __u64 thread, bool is_compiled)
{
	struct walk_lua *lua = &walk->lua;
	struct walk_lua_place *place = &lua->places[row_masked(lua->count, WALK_LUA_PLACES - 1)];

	lua->count++;
	if (lua->count > WALK_LUA_PLACES)
		return;
	place->thread = thread;
	place->at = walk->cfa;
	place->is_compiled = is_compiled;
	place->trace = is_compiled ? lua->trace : 0;
	place->offset = lua->offset;
	place->fp = walk->fp_known ? walk->fp : 0;
	place->base = place->pc = 0;
	if (!thread)
		return;
	if (!walk_bx(walk, &place->pc))
		place->pc = 0;
	if ((walk->full || lua->is_in_part) &&
	    !walk_interrupted(walk, LUA_REGISTER_BASE, &place->base))
		place->base = 0;
	lua->is_in_part = false;
}

/* Leaves the frame at walk->cfa, which is the thread's. */
static __always_inline enum stack_end lua_leave(struct walk *walk, __u64 thread)
{
	__u64 at = walk->cfa;

	if (!walk_word(walk, at + LUA_FRAME_OUTER, &walk->lua.outer) ||
	    !walk_word(walk, at + LUA_FRAME_FP, &walk->saved.fp) ||
	    !walk_word(walk, at + LUA_FRAME_RETURN, &walk->saved.pc))
		return STACK_UNREADABLE;
	walk->lua.outer &= ~LUA_FRAME_FLAGS;
	walk->lua.thread = thread;
	walk->cfa = at + LUA_FRAME_BYTES;
	walk->fp_known = walk->bx_known = true;
	walk->bx_at = at + LUA_FRAME_BX;
	walk->by_table++;
	return walk_arrive(walk, true);
}

/*
 * Where the interpreter was interrupted before its frame is there, or in a part that is called like
 * a function: the return address is behind what it has pushed, rbp first.
 */
static __always_inline enum stack_end lua_leave_entry(struct walk *walk)
{
	WALK_KEEP_LOOP
	for (int i = 0; i <= LUA_ENTRY_WORDS; i++) {
		__u32 words = i < LUA_ENTRY_WORDS ? i : LUA_FRAME_RETURN / 8;

		walk->cfa = walk->sp + 8ull * words + 8;
		walk->saved.fp = walk->fp;
		if (!walk_word(walk, walk->cfa - 8, &walk->saved.pc) ||
		    !walk_is_after_call(walk, walk->saved.pc))
			continue;
		if (words && !walk_word(walk, walk->cfa - 16, &walk->saved.fp))
			return STACK_UNREADABLE;
		if (words > 1) {
			walk->bx_known = true;
			walk->bx_at = walk->cfa - 24;
		}
		walk->by_table++;
		return walk_arrive(walk, true);
	}
	return STACK_NO_FRAME_POINTER;
}

static __always_inline enum stack_end lua_out_of_interpreter(struct walk *walk)
{
	enum stack_end end = STACK_NO_FRAME_POINTER;
	__u64 thread = 0;

	if (!lua_find_frame(walk, 1, &thread)) {
		if (walk->full)
			end = lua_leave_entry(walk);
		if (end != STACK_NO_FRAME_POINTER) {
			lua_note_place(walk, 0, false);
			walk->lua.is_in_part = walk_is_in_lua(walk);
			return end;
		}
		if (!lua_find_frame(walk, LUA_SCAN_WORDS, &thread)) {
			lua_note_place(walk, 0, false);
			return STACK_NO_FRAME_POINTER;
		}
	}
	lua_note_place(walk, thread, false);
	return lua_leave(walk, thread);
}

/* Leaves a frame of the interpreter, or of generated code. */
WALK_APART enum stack_end walk_out_of_lua(struct walk *walk)
{
	__u64 thread = 0;

	trail_break(&walk->trail);
	if (walk_is_in_lua(walk))
		return lua_out_of_interpreter(walk);
	if (lua_find_frame(walk, LUA_SCAN_WORDS, &thread) && lua_is_trace(walk, thread)) {
		lua_note_place(walk, thread, true);
		return lua_leave(walk, thread);
	}
	lua_note_place(walk, 0, false);
	return walk_out_of_generated(walk);
}

/* For a process that runs LuaJIT. */
static __always_inline void lua_prepare(struct walk *walk, const struct script_lua_layout *layout)
{
	walk->has_lua = true;
	walk->lua.layout = *layout;
	walk->lua.thread = walk->lua.outer = 0;
	walk->lua.count = 0;
	walk->lua.is_in_part = false;
}

#endif
