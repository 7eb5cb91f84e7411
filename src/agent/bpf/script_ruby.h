/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_ruby - the control frames of a Ruby thread, from the innermost outwards.
 *
 *   thread pointer -> execution context -> control frame, next to it its caller's, ...
 *                                          control frame -> environment -> method entry
 *
 * A frame of a method, in Ruby or in C, is its method entry, which says class and name. Any other
 * (a block, a class's body, a file) is its instructions, followed by a mark with the method entry
 * that it belongs to, if there is one. An entry's second word has the low half of the program
 * counter: the instructions say where they begin. The frame that rb_vm_exec was called for is
 * flagged by Ruby itself.
 *
 * Plain C, like script.h. Layouts: Ruby's vm_core.h, method.h, internal/imemo.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_RUBY_H
#define FIRN_AGENT_BPF_SCRIPT_RUBY_H

#include "agent/bpf/row.h"
#include "agent/bpf/script.h"

#define SCRIPT_RUBY_FRAME_BYTES_MAX 64u
#define SCRIPT_RUBY_STACK_WORDS_MAX (1ull << 28)
#define SCRIPT_RUBY_SCOPES_MAX 8 /* of blocks within one another */

/* In script.words: a control frame, the end of its environment, the head of an object. */
enum script_ruby_word {
	RUBY_FRAME_PC = 0,
	RUBY_FRAME_CODE = 2,
	RUBY_FRAME_SCOPE = 4,
	RUBY_SCOPE_METHOD = 8,
	RUBY_SCOPE_OUTER = 9,
	RUBY_SCOPE_FLAGS = 10,
	RUBY_OBJECT = 11, /* flags, then four words */
};

enum script_ruby_flag {
	RUBY_FLAG_LOCAL = 0x2, /* the environment is not within another one */
	RUBY_FLAG_FINISH = 0x20,
	RUBY_FRAME_KIND = 0x7fff0001,
	RUBY_FRAME_METHOD = 0x11110001,
	RUBY_FRAME_CLASS = 0x33330001,
	RUBY_FRAME_TOP = 0x44440001,
	RUBY_FRAME_C_METHOD = 0x55550001,
	RUBY_FRAME_C_BLOCK = 0x66660001,
	RUBY_FRAME_DUMMY = 0x79990001,
};

/* What the flags of an object say that it is. */
#define RUBY_OBJECT_KIND 0xf01fu
#define RUBY_OBJECT_SPECIAL 0x201au /* a method's special variables */
#define RUBY_OBJECT_METHOD 0x601au
#define RUBY_OBJECT_CODE 0x701au

/* Sets script->frame and script->limit. False when the thread runs no Ruby. */
static __always_inline bool script_ruby_start(struct script *script, __u64 thread)
{
	__u16 hop = script->process.ruby.context;
	__u64 at = 0, context = 0;

	if (!script_find_state(script, thread, &at) || walk_read(&context, sizeof(context), at))
		return false;
	if (hop && context && walk_read(&context, sizeof(context), context + hop))
		return false;
	if (!context || walk_read(script->words, 24, context) ||
	    script->words[1] > SCRIPT_RUBY_STACK_WORDS_MAX)
		return false;
	script->frame = script->words[2];
	script->limit = script->words[0] + 8 * script->words[1];
	return script->frame >= script->words[0] && script->frame < script->limit;
}

static __always_inline bool script_ruby_read_object(struct script *script, __u64 object)
{
	return object && !(object & 7) && !walk_read(&script->words[RUBY_OBJECT], 40, object);
}

static __always_inline bool script_ruby_is(const struct script *script, __u32 kind)
{
	return (script->words[RUBY_OBJECT] & RUBY_OBJECT_KIND) == kind;
}

/* The method entry of the environment at hand, whose head is read; 0 = it has none. */
static __always_inline __u64 script_ruby_method(struct script *script)
{
	__u64 object = script->words[RUBY_SCOPE_METHOD];

	if (!script_ruby_read_object(script, object))
		return 0;
	if (script_ruby_is(script, RUBY_OBJECT_SPECIAL)) {
		object = script->words[RUBY_OBJECT + 1];
		if (!script_ruby_read_object(script, object))
			return 0;
	}
	return script_ruby_is(script, RUBY_OBJECT_METHOD) ? object : 0;
}

static __always_inline bool script_ruby_read_scope(struct script *script, __u64 scope)
{
	return !(scope & 7) && !walk_read(&script->words[RUBY_SCOPE_METHOD], 24, scope - 16);
}

/* The method entry of the environments around a block. */
static __always_inline __u64 script_ruby_outer_method(struct script *script)
{
	WALK_KEEP_LOOP
	for (int i = 0; i < SCRIPT_RUBY_SCOPES_MAX; i++) {
		__u64 method = script_ruby_method(script);

		if (method || script->words[RUBY_SCOPE_FLAGS] & RUBY_FLAG_LOCAL ||
		    !script_ruby_read_scope(script, script->words[RUBY_SCOPE_OUTER] & ~3ull))
			return method;
	}
	return 0;
}

static __always_inline void script_ruby_put(struct script *script, struct sample *sample,
					    __u64 object, __u64 flags, bool is_method)
{
	__u64 proof = object ? script_ruby_proof(&script->words[RUBY_OBJECT + 1], is_method) : 0;

	script_put(script, sample, object | flags,
		   proof << 32 | (__u32)script->words[RUBY_FRAME_PC]);
}

/* A frame that is not a method's own. */
static __always_inline void script_ruby_put_code(struct script *script, struct sample *sample,
						 __u32 kind, __u64 flags)
{
	__u64 code = script->words[RUBY_FRAME_CODE], method = 0;

	if (!script_ruby_read_object(script, code) || !script_ruby_is(script, RUBY_OBJECT_CODE))
		code = 0;
	script_ruby_put(script, sample, code, 0, false);
	if (kind != RUBY_FRAME_CLASS && kind != RUBY_FRAME_TOP)
		method = script_ruby_outer_method(script);
	if ((!method && !flags) || !script->room)
		return;
	script->room--;
	script_ruby_put(script, sample, method, flags | SCRIPT_IS_MARK, true);
}

/* Notes the frame at hand and goes to the one outside of it. False when there is none. */
static __always_inline bool script_ruby_frame(struct script *script, struct sample *sample)
{
	__u32 bytes = script->process.ruby.frame_bytes;
	__u64 flags, method;
	__u32 kind;

	if (script->frame >= script->limit)
		return false;
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	if (bytes > SCRIPT_RUBY_FRAME_BYTES_MAX)
		bytes = SCRIPT_RUBY_FRAME_BYTES_MAX;
	if (bytes < 8 || script->frame & 7 || walk_read(script->words, bytes, script->frame) ||
	    !script_ruby_read_scope(script, script->words[RUBY_FRAME_SCOPE]))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	script->frame += bytes;
	kind = script->words[RUBY_SCOPE_FLAGS] & RUBY_FRAME_KIND;
	flags = script->words[RUBY_SCOPE_FLAGS] & RUBY_FLAG_FINISH ? SCRIPT_ENDS_RUN : 0;
	if (kind == RUBY_FRAME_DUMMY)
		return true;
	method = kind == RUBY_FRAME_METHOD || kind == RUBY_FRAME_C_METHOD
			 ? script_ruby_method(script)
			 : 0;
	if (method || kind == RUBY_FRAME_C_METHOD)
		script_ruby_put(script, sample, method, flags, true);
	else if (kind != RUBY_FRAME_C_BLOCK)
		script_ruby_put_code(script, sample, kind, flags);
	else if (flags)
		script_put(script, sample, flags | SCRIPT_IS_MARK, 0);
	return true;
}

#endif
