/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_lua - the frames of LuaJIT, from the innermost outwards, for each place that the walk came
 * through (lua.h).
 *
 *   place -> base of a frame -> function, link -> base of the frame outside of it
 *
 *   base - 32  continuation, and where it goes on    (of a frame that a metamethod made)
 *        - 16  function
 *        -  8  link: the caller's next instruction, or how far it is to the frame outside, with
 * what made the frame: 1 and 5 C, 2 a metamethod, 3 variable arguments, 6 and 7 pcall
 *
 * A run of frames, which is what one C frame of the interpreter runs, ends where C made one. What
 * links a run to the frame outside of it says where the next run of the same thread begins; only
 * the innermost run of a thread has to be looked for. The interpreter keeps its base in a register,
 * and does not always write it to the thread. So a base is taken when the instruction that runs
 * next, which is in rbx, belongs to its function, or is the one to return to; where none of the
 * registers and what is in memory agree, the run begins with a word that it is a guess.
 *
 * Machine code keeps its frames in registers. The base of the frame that it was entered with is in
 * what threads share; which functions run inside of it, the trace says (agent/runtime/lua).
 *
 * Plain C, like script.h. Layouts: LuaJIT's lj_obj.h and lj_frame.h, 64-bit references.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_LUA_H
#define FIRN_AGENT_BPF_SCRIPT_LUA_H

#include "agent/bpf/row.h"
#include "agent/bpf/script.h"
#include "agent/bpf/walk_runtime.h"

#define SCRIPT_LUA_FRAME_BYTES 32u
#define SCRIPT_LUA_FUNCTION_BYTES 40u
#define SCRIPT_LUA_THREAD_BYTES 32u /* from its base on */
#define SCRIPT_LUA_POSITION_AT 24u  /* in a C frame: what the interpreter runs next, saved */
#define SCRIPT_LUA_RESULTS_AT 8u    /* ... how many are wanted; less than 0: it runs no Lua yet */
#define SCRIPT_LUA_PROTOTYPE_BYTES 104u /* before the instructions */
#define SCRIPT_LUA_COUNT_AT 12u		/* ... in it: how many */
#define SCRIPT_LUA_PROOF_AT 64u		/* ... in it: its names, lines */
#define SCRIPT_LUA_TRACE_PROOF 24u	/* before where a trace has its code: what it begins with */
#define SCRIPT_LUA_EXTRA_BYTES 128u	/* over the end of a stack */

/* In script.words: a frame, and behind it its function. */
enum script_lua_word {
	LUA_WORD_CONTINUATION,
	LUA_WORD_GOES_ON,
	LUA_WORD_FUNCTION,
	LUA_WORD_LINK,
	LUA_WORD_OBJECT = 4,
	LUA_WORD_HEAD = 5,
	LUA_WORD_CODE = 8,
	LUA_WORD_COUNT = 9, /* of instructions */
};

#define LUA_TAG_SHIFT 47
#define LUA_TAG_FUNCTION 0x1fff7ull
#define LUA_OBJECT_FUNCTION 8u
#define LUA_LINK_KIND 7ull
#define LUA_FROM_C 1u
#define LUA_CONTINUES 2u
#define LUA_VARIABLE 3u
#define LUA_FROM_C_TOO 5u
#define LUA_CONTINUES_IN_C 1u /* a continuation: an ffi callback */
#define LUA_INSTRUCTIONS_MAX (1u << 26)

static __always_inline __u64 script_lua_address(__u64 word)
{
	return word & ((1ull << LUA_TAG_SHIFT) - 1);
}

/* True if the base is inside of the thread's stack. */
static __always_inline bool script_lua_is_base(const struct script_lua *lua, __u64 base)
{
	return !(base & 7) && base > lua->low && base <= lua->high;
}

/* True if the function that was read is in C, or a part of the runtime. */
static __always_inline bool script_lua_is_native(const struct script *script)
{
	return (__u8)(script->words[LUA_WORD_HEAD] >> 16);
}

/* Reads the frame, and of its function what there is to know. False when it is none. */
static __always_inline bool script_lua_read(struct script *script, __u64 base)
{
	__u64 function;
	__u32 count = 0;

	script->words[LUA_WORD_HEAD] = script->words[LUA_WORD_CODE] = 0;
	script->words[LUA_WORD_COUNT] = 0;
	if (walk_read(script->words, SCRIPT_LUA_FRAME_BYTES, base - SCRIPT_LUA_FRAME_BYTES))
		return false;
	function = script->words[LUA_WORD_FUNCTION];
	if (function >> LUA_TAG_SHIFT != LUA_TAG_FUNCTION)
		return script_lua_address(function) == script->lua.thread; /* stands for none */
	function = script_lua_address(function);
	if (function & 7 ||
	    walk_read(&script->words[LUA_WORD_OBJECT], SCRIPT_LUA_FUNCTION_BYTES, function) ||
	    (__u8)(script->words[LUA_WORD_HEAD] >> 8) != LUA_OBJECT_FUNCTION)
		return false;
	if (script_lua_is_native(script)) {
		script->words[LUA_WORD_COUNT] = 1; /* that calls it */
		return true;
	}
	if (walk_read(&count, sizeof(count),
		      script->words[LUA_WORD_CODE] - SCRIPT_LUA_PROTOTYPE_BYTES +
			      SCRIPT_LUA_COUNT_AT) ||
	    count >= LUA_INSTRUCTIONS_MAX)
		return false;
	script->words[LUA_WORD_COUNT] = count;
	return true;
}

static __always_inline bool script_lua_stands_for_none(const struct script *script)
{
	return script->words[LUA_WORD_FUNCTION] >> LUA_TAG_SHIFT != LUA_TAG_FUNCTION;
}

/* True if the instruction that runs next is one of the function's. */
static __always_inline bool script_lua_has(const struct script *script, __u64 pc)
{
	return pc - script->words[LUA_WORD_CODE] <= 4 * script->words[LUA_WORD_COUNT] && pc;
}

/* Whether the frame at base is the one that runs while `pc` is the next instruction. */
static __always_inline bool script_lua_fits(struct script *script, __u64 base, __u64 pc)
{
	if (!pc || !script_lua_is_base(&script->lua, base) || !script_lua_read(script, base) ||
	    script_lua_stands_for_none(script))
		return false;
	if (script_lua_has(script, pc))
		script->lua.pc = pc;
	else if (script->words[LUA_WORD_LINK] == pc) /* it is about to begin, or has ended */
		script->lua.pc = script->words[LUA_WORD_CODE];
	else
		return false;
	script->frame = base;
	return true;
}

/* Takes the base of the frame that made a call in Lua, of the instruction before `link`. */
static __always_inline bool script_lua_caller(const struct script *script, __u64 link, __u64 *ret)
{
	__u32 call = 0;

	if (walk_read(&call, sizeof(call), link - 4))
		return false;
	*ret = script->frame - 8 * (2 + (__u64)(call >> 8 & 0xff));
	return *ret < script->frame;
}

/*
 * Whether `link`, of the frame at hand, leads to the one outside. Reads that, if it is Lua's: its
 * base is in *ret then.
 */
static __always_inline bool script_lua_leads_out(struct script *script, __u64 link, __u64 *ret)
{
	if (link & 3)
		return (link & ~LUA_LINK_KIND) <= script->frame - script->lua.low;
	return script_lua_caller(script, link, ret) && script_lua_is_base(&script->lua, *ret) &&
	       script_lua_read(script, *ret) && script_lua_has(script, link);
}

/*
 * The base that fits is that of a function which calls itself, before the link is written: what
 * calls runs still. Any other function's base would not fit then.
 */
static __always_inline void script_lua_leave_unlinked(struct script *script)
{
	__u64 outer = 0;

	if (!script_lua_leads_out(script, script->words[LUA_WORD_LINK], &outer) &&
	    !(script->lua.pc & 3) && script_lua_leads_out(script, script->lua.pc, &outer))
		script->frame = outer;
}

/* Words of a frame, a mark or a cut: at most two of them in one step. */
static __always_inline void script_lua_note(struct script *script, struct sample *sample,
					    __u64 first, __u64 second)
{
	script->room--;
	script_put(script, sample, first, second);
}

static __always_inline void script_lua_end_run(struct script *script, struct sample *sample)
{
	script_lua_note(script, sample, SCRIPT_IS_MARK | SCRIPT_ENDS_RUN, 0);
	script->frame = 0;
}

/* Of a run that goes on outside of one that C made: what runs next is known, if it is Lua. */
static __always_inline void script_lua_go_on(struct script *script,
					     const struct walk_lua_place *place, __u64 saved)
{
	script->frame = script->lua.outer;
	script->lua.pc = 0;
	if (!script_lua_read(script, script->frame))
		return; /* said when it is walked */
	if (script_lua_has(script, place->pc))
		script->lua.pc = place->pc;
	else if (script_lua_has(script, saved))
		script->lua.pc = saved;
}

/* The innermost run of a thread. False when its base is a guess. */
static __always_inline bool script_lua_look(struct script *script,
					    const struct walk_lua_place *place, __u64 saved,
					    __u64 base, __u64 trace_base)
{
	/* Also on the way into a trace, and when it was left. */
	if (!place->is_compiled && script_lua_fits(script, place->base, place->pc)) {
		script_lua_leave_unlinked(script);
		return true;
	}
	if (trace_base) {
		script->frame = trace_base;
		script->lua.pc = 0;
		script->lua.trace = place->is_compiled ? place->trace : 0;
		script->lua.offset = place->offset;
		/* What is inlined is known of a trace alone, and not on the way out of it. */
		return script->lua.trace && script_lua_is_base(&script->lua, trace_base);
	}
	if (script_lua_fits(script, place->fp, place->pc) ||
	    script_lua_fits(script, base, place->pc) || script_lua_fits(script, base, saved))
		return true;
	script->frame = base;
	script->lua.pc = 0;
	/* Called from C, with nothing in Lua around it. */
	return script_lua_is_base(&script->lua, base) && script_lua_read(script, base) &&
	       script_lua_is_native(script) && script->words[LUA_WORD_LINK] & 3;
}

/* Goes to the next place. False when there is none. */
static __always_inline bool script_lua_begin(struct script *script, const struct walk_lua *places,
					     struct sample *sample)
{
	__u32 index = script->index;
	const struct walk_lua_place *place =
		&places->places[row_masked(index, WALK_LUA_PLACES - 1)];
	const struct script_lua_layout *layout = &script->process.lua;
	struct script_lua *lua = &script->lua;
	__u64 shared = 0, trace_base = 0, saved = 0;
	__s32 results = 0;
	bool is_known, is_innermost = !lua->thread;

	if (index >= places->count)
		return false;
	if (index >= WALK_LUA_PLACES)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->index = index + 1;
	lua->is_inner = false;
	lua->trace = 0;
	if (!place->thread) {
		script_lua_end_run(script, sample);
		return true;
	}
	if (!walk_read(&results, sizeof(results), place->at + SCRIPT_LUA_RESULTS_AT) &&
	    results < 0) {
		script_lua_end_run(script, sample);
		return true;
	}
	is_known = place->thread == lua->thread && lua->outer;
	lua->thread = place->thread;
	/* Its base, top, end and start. */
	if (walk_read(script->words, SCRIPT_LUA_THREAD_BYTES, place->thread + layout->base) ||
	    walk_read(&shared, sizeof(shared), place->thread + layout->shared) ||
	    walk_read(&trace_base, sizeof(trace_base), shared + layout->trace_base) ||
	    walk_read(&saved, sizeof(saved), place->at + SCRIPT_LUA_POSITION_AT)) {
		script_lua_note(script, sample, SCRIPT_IS_CUT | SCRIPT_ENDS_RUN, SCRIPT_UNREADABLE);
		return true;
	}
	lua->low = script->words[3] + 16;
	lua->high = script->words[2] + SCRIPT_LUA_EXTRA_BYTES;
	if (is_known)
		script_lua_go_on(script, place, saved);
	else if (!script_lua_look(script, place, saved, script->words[0],
				  is_innermost ? trace_base : 0))
		script_lua_note(script, sample, SCRIPT_IS_CUT, SCRIPT_UNSURE);
	lua->outer = 0;
	if (!script_lua_is_base(lua, script->frame))
		script_lua_end_run(script, sample);
	return true;
}

static __always_inline void script_lua_put_object(struct script *script, struct sample *sample,
						  __u64 object, __u64 proof_at, __u64 flags,
						  __u32 position)
{
	__u32 proof = 0;

	if (!walk_read(script->proof, sizeof(script->proof), proof_at))
		proof = script_proof(script->proof);
	script_lua_note(script, sample, SCRIPT_ADDRESS(object) | flags,
			(__u64)proof << 32 | position);
}

/* Notes the frame at hand. */
static __always_inline void script_lua_put(struct script *script, struct sample *sample,
					   __u64 flags)
{
	struct script_lua *lua = &script->lua;
	__u64 code = script->words[LUA_WORD_CODE], object = code - SCRIPT_LUA_PROTOTYPE_BYTES;
	__u32 position = SCRIPT_LUA_NO_POSITION;

	if (lua->trace) {
		script_lua_put_object(script, sample, lua->trace,
				      lua->trace + script->process.lua.code -
					      SCRIPT_LUA_TRACE_PROOF,
				      flags | (__u64)LUA_TRACE << SCRIPT_PLACE_SHIFT, lua->offset);
		lua->trace = 0;
		return;
	}
	if (lua->is_inner || script_lua_stands_for_none(script)) {
		if (flags)
			script_lua_note(script, sample, SCRIPT_IS_MARK | flags, 0);
		return;
	}
	if (script_lua_is_native(script)) {
		script_lua_note(script, sample, flags | (__u64)LUA_NATIVE << SCRIPT_PLACE_SHIFT, 0);
		return;
	}
	if (script_lua_has(script, lua->pc))
		position = lua->pc > code ? (lua->pc - code) / 4 - 1 : 0;
	script_lua_put_object(script, sample, object, object + SCRIPT_LUA_PROOF_AT, flags,
			      position);
}

/* Takes the base of the frame outside of the one at hand; false when that cannot be read. */
static __always_inline bool script_lua_go_out(struct script *script, __u64 *ret)
{
	struct script_lua *lua = &script->lua;
	__u64 link = script->words[LUA_WORD_LINK], kind = link & LUA_LINK_KIND;

	lua->is_inner = kind == LUA_VARIABLE; /* the same function's arguments */
	if (kind & 3) {
		*ret = script->frame - (link & ~LUA_LINK_KIND);
		lua->pc = kind == LUA_CONTINUES ? script->words[LUA_WORD_GOES_ON] : lua->pc;
		if (kind != LUA_CONTINUES)
			lua->pc = 0;
	} else {
		if (!script_lua_caller(script, link, ret))
			return false;
		lua->pc = link;
	}
	return *ret < script->frame;
}

/* Notes the frame at hand and goes to the one outside of it. False when there is none. */
static __always_inline bool script_lua_frame(struct script *script, const struct walk_lua *places,
					     struct sample *sample)
{
	__u64 flags, kind, outer = 0;

	if (script->room < 3)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	if (!script->frame)
		return script_lua_begin(script, places, sample);
	if (!script_lua_read(script, script->frame)) {
		script_lua_note(script, sample, SCRIPT_IS_CUT | SCRIPT_ENDS_RUN, SCRIPT_UNREADABLE);
		script->frame = 0;
		return true;
	}
	kind = script->words[LUA_WORD_LINK] & LUA_LINK_KIND;
	flags = kind == LUA_FROM_C || kind == LUA_FROM_C_TOO ||
				(kind == LUA_CONTINUES &&
				 script->words[LUA_WORD_CONTINUATION] == LUA_CONTINUES_IN_C)
			? SCRIPT_ENDS_RUN
			: 0;
	script_lua_put(script, sample, flags);
	if (!script_lua_go_out(script, &outer)) {
		script_lua_note(script, sample, SCRIPT_IS_CUT | SCRIPT_ENDS_RUN, SCRIPT_UNREADABLE);
		script->frame = 0;
	} else if (flags) {
		script->lua.outer = script_lua_is_base(&script->lua, outer) ? outer : 0;
		script->frame = 0;
	} else if (script_lua_is_base(&script->lua, outer)) {
		script->frame = outer;
	} else {
		script_lua_end_run(script, sample);
	}
	return true;
}

#endif
