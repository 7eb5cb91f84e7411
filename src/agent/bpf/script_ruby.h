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

/* In a control frame, in the end of its environment; in script.words the head of an object. */
enum script_ruby_word {
	RUBY_FRAME_PC = 0,
	RUBY_FRAME_CODE = 2,
	RUBY_FRAME_SCOPE = 4,
	RUBY_SCOPE_METHOD = 0,
	RUBY_SCOPE_OUTER = 1,
	RUBY_SCOPE_FLAGS = 2,
	RUBY_OBJECT = 0, /* flags, then four words */
};

#define SCRIPT_RUBY_SCOPE_BYTES 24u

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
	script_window_reset(&script->frames, script->frame);
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

/* The method entry that an environment names, whose head is read; 0 = it names none. */
static __always_inline __u64 script_ruby_read_method(struct script *script, __u64 object)
{
	if (!script_ruby_read_object(script, object))
		return 0;
	if (script_ruby_is(script, RUBY_OBJECT_SPECIAL)) {
		object = script->words[RUBY_OBJECT + 1];
		if (!script_ruby_read_object(script, object))
			return 0;
	}
	return script_ruby_is(script, RUBY_OBJECT_METHOD) ? object : 0;
}

/* The same with its proof: more is 0 where there is none. */
static __always_inline const struct script_seen *script_ruby_method(struct script *script,
								    __u64 object)
{
	struct script_seen *seen;
	__u64 method;

	if (script_is_seen(script, object, SEEN_METHOD, &seen))
		return seen;
	method = script_ruby_read_method(script, object);
	if (method)
		script_keep(script, seen, script_ruby_proof(&script->words[RUBY_OBJECT + 1], true),
			    method, method);
	return seen;
}

/* Instructions, with their proof; the same. */
static __always_inline const struct script_seen *script_ruby_code(struct script *script, __u64 code)
{
	struct script_seen *seen;

	if (script_is_seen(script, code, SEEN_CODE, &seen) ||
	    !script_ruby_read_object(script, code) || !script_ruby_is(script, RUBY_OBJECT_CODE))
		return seen;
	script_keep(script, seen, script_ruby_proof(&script->words[RUBY_OBJECT + 1], false), code,
		    code);
	return seen;
}

/* The end of an environment; NULL = it cannot be read. */
static __always_inline const __u64 *script_ruby_scope(struct script *script, __u64 scope)
{
	if (!script_window_read(&script->scopes, scope - 16, SCRIPT_RUBY_SCOPE_BYTES,
				SCRIPT_OUTWARDS_IS_DOWN))
		return NULL;
	return script_window_at(&script->scopes, scope - 16);
}

/* The method entry of the environments around a block. */
static __always_inline const struct script_seen *script_ruby_outer_method(struct script *script,
									  const __u64 *scope)
{
	const struct script_seen *seen = script_ruby_method(script, scope[RUBY_SCOPE_METHOD]);

	WALK_KEEP_LOOP
	for (int i = 0; i < SCRIPT_RUBY_SCOPES_MAX; i++) {
		if (seen->more || scope[RUBY_SCOPE_FLAGS] & RUBY_FLAG_LOCAL)
			break;
		scope = script_ruby_scope(script, scope[RUBY_SCOPE_OUTER] & ~3ull);
		if (!scope)
			break;
		seen = script_ruby_method(script, scope[RUBY_SCOPE_METHOD]);
	}
	return seen;
}

static __always_inline void script_ruby_put(struct script *script, struct sample *sample,
					    const struct script_seen *seen, __u64 flags, __u64 pc)
{
	script_put(script, sample, seen->more | flags, seen->proof << 32 | (__u32)pc);
}

/* A frame that is not a method's own. */
static __always_inline void script_ruby_put_code(struct script *script, struct sample *sample,
						 __u64 code, __u64 pc, const __u64 *scope,
						 __u64 flags)
{
	__u32 kind = scope[RUBY_SCOPE_FLAGS] & RUBY_FRAME_KIND;
	const struct script_seen *method = NULL;
	bool has_method;

	script_ruby_put(script, sample, script_ruby_code(script, code), 0, pc);
	if (kind != RUBY_FRAME_CLASS && kind != RUBY_FRAME_TOP)
		method = script_ruby_outer_method(script, scope);
	has_method = method && method->more;
	if ((!has_method && !flags) || !script->room)
		return;
	script->room--;
	flags |= SCRIPT_IS_MARK;
	if (has_method)
		script_ruby_put(script, sample, method, flags, pc);
	else
		script_put(script, sample, flags, (__u32)pc);
}

/* Notes the frame at hand and goes to the one outside of it. False when there is none. */
static __always_inline bool script_ruby_frame(struct script *script, struct sample *sample)
{
	__u32 bytes = script->process.ruby.frame_bytes & ~7u;
	const __u64 *frame, *scope;
	__u64 flags, code, pc;
	__u32 kind;

	if (script->frame >= script->limit)
		return false;
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	if (bytes > SCRIPT_RUBY_FRAME_BYTES_MAX)
		bytes = SCRIPT_RUBY_FRAME_BYTES_MAX;
	if (bytes < 8 ||
	    !script_window_read(&script->frames, script->frame, bytes, SCRIPT_OUTWARDS_IS_UP))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	frame = script_window_at(&script->frames, script->frame);
	code = frame[RUBY_FRAME_CODE];
	pc = frame[RUBY_FRAME_PC];
	scope = script_ruby_scope(script, frame[RUBY_FRAME_SCOPE]);
	if (!scope)
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	script->frame += bytes;
	kind = scope[RUBY_SCOPE_FLAGS] & RUBY_FRAME_KIND;
	flags = scope[RUBY_SCOPE_FLAGS] & RUBY_FLAG_FINISH ? SCRIPT_ENDS_RUN : 0;
	if (kind == RUBY_FRAME_DUMMY)
		return true;
	if (kind == RUBY_FRAME_METHOD || kind == RUBY_FRAME_C_METHOD) {
		const struct script_seen *method =
			script_ruby_method(script, scope[RUBY_SCOPE_METHOD]);

		if (method->more || kind == RUBY_FRAME_C_METHOD) {
			script_ruby_put(script, sample, method, flags, pc);
			return true;
		}
	}
	if (kind != RUBY_FRAME_C_BLOCK)
		script_ruby_put_code(script, sample, code, pc, scope, flags);
	else if (flags)
		script_put(script, sample, flags | SCRIPT_IS_MARK, 0);
	return true;
}

#endif
