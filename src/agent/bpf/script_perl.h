/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_perl - the frames of Perl, from the innermost outwards.
 *
 *   thread -> interpreter -> stack of contexts -> sub, evaluated text or file -> the one outside
 *                            `-> the stack outside
 *
 * Perl keeps a context for each call of a sub, eval and block. A stack of them, of which newer
 * Perls link those that are calls, is begun for each thing that the interpreter itself has to call:
 * comparisons of sort, overloaded operators, destructors. Where a frame is, the statement that
 * was at hand says, by line and file: the interpreter's current one of the innermost frame, and of
 * the others what the context inside has kept.
 *
 * Each call of the interpreter's loop runs one run of frames. It ends with a context that returns
 * to no instruction, as C has called it, or with its stack; a stack may have both. Such a context
 * may also be what the block of a sort does last, or have a block of eval around it that C has
 * made: so what lies next to the outermost context ends no run of its own.
 *
 * Copies of a closure are objects of their own, so that a sub's proof says more than its address,
 * as that of a function of PHP does (script_php.h). Frames of evaluated text, of a file and of the
 * program have no object: the name of the statement's file stands for it.
 *
 * Plain C, like script.h. Layouts: Perl's cop.h, cv.h, sv.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_PERL_H
#define FIRN_AGENT_BPF_SCRIPT_PERL_H

#include "agent/bpf/script.h"

#define SCRIPT_PERL_CONTEXT_BYTES 80u
#define SCRIPT_PERL_STACK_BYTES 48u
#define SCRIPT_PERL_CONTEXTS_MAX (1 << 24)
#define SCRIPT_PERL_STATEMENT_AT 32u /* in a statement: line and file from here on */
#define SCRIPT_PERL_SUB_AT 32u	     /* in a sub's body: package, code, name */

/* In a context, and in script.words the stack that it is in. */
enum script_perl_word {
	PERL_CONTEXT_KIND = 0,
	PERL_CONTEXT_STATEMENT = 2,
	PERL_CONTEXT_RETURN = 6,
	PERL_CONTEXT_NEXT = 7, /* the next one that is a call, in newer Perls */
	PERL_STACK_CONTEXTS = 1,
	PERL_STACK_OUTER = 2,
	PERL_STACK_TOP = 4,
	PERL_STACK_TOP_CALL = 5, /* and in the high half, or, in older Perls, here, the kind */
};

/* A context's kind, and its flags, whose meaning depends on the kind. */
#define PERL_KIND 15u
#define PERL_SUB 9u
#define PERL_FORMAT 10u
#define PERL_EVAL 11u
#define PERL_SUB_IS_FAKE 0x80u	/* code in a regular expression, of the sub outside */
#define PERL_EVAL_IS_TEXT 0x20u /* otherwise a file, or a block */
#define PERL_EVAL_IS_BLOCK 0x40u

#define PERL_STACK_IS_LOADING 9u /* the kind of a stack for blocks that run while code is read */

/* The stack at hand becomes this one; false when it cannot be read. */
static __always_inline bool script_perl_enter(struct script *script, __u64 stack)
{
	const struct script_perl_layout *layout = &script->process.perl;
	__s32 top;

	script->frame = stack;
	if (stack & 7 || walk_read(script->words, SCRIPT_PERL_STACK_BYTES, stack))
		return false;
	top = (__s32)script->words[PERL_STACK_TOP];
	script->run = top < 0 ? 0 : SCRIPT_PERL_CONTEXTS_MAX;
	script->index = layout->links_calls ? (__s32)script->words[PERL_STACK_TOP_CALL] : top;
	return top < SCRIPT_PERL_CONTEXTS_MAX && script->index <= top;
}

/* Sets script->frame to the innermost stack, and script->limit to the statement at hand. False when
 * the thread runs no Perl. */
static __always_inline bool script_perl_start(struct script *script, __u64 thread)
{
	const struct script_perl_layout *layout = &script->process.perl;
	__u64 at = 0, state = script->process.state_at, stack = 0;

	script->frame = 0;
	script->limit = 0;
	if (script->process.state_form != SCRIPT_STATE_GLOBAL &&
	    (!script_find_state(script, thread, &at) || walk_read(&state, sizeof(state), at) ||
	     !state))
		return false;
	if (walk_read(&stack, sizeof(stack), state + layout->stack) || !stack ||
	    walk_read(&script->limit, sizeof(script->limit), state + layout->statement))
		return false;
	if (!script_perl_enter(script, stack))
		script->index = SCRIPT_PERL_CONTEXTS_MAX; /* said by script_perl_frame */
	return true;
}

static __always_inline bool script_perl_put(struct script *script, struct sample *sample,
					    __u64 first, __u64 second)
{
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	script_put(script, sample, first, second);
	return true;
}

/* An object with what tells it from others, on a line. */
static __always_inline bool script_perl_put_code(struct script *script, struct sample *sample,
						 __u64 object, __u64 proof, __u64 flags, __u32 line)
{
	return script_perl_put(script, sample,
			       SCRIPT_ADDRESS(object) | flags | proof << SCRIPT_PLACE_SHIFT,
			       proof >> 32 << 32 | line);
}

/* The line of the statement at hand, and its file; false when it is not there. */
static __always_inline bool script_perl_statement(struct script *script, __u32 *ret_line,
						  __u64 *ret_file)
{
	struct script_seen *seen;

	*ret_line = 0;
	*ret_file = 0;
	if (!script->limit) /* nothing has run yet */
		return true;
	if (!script_is_seen(script, script->limit, SEEN_STATEMENT, &seen)) {
		if (walk_read(script->proof, 24, script->limit + SCRIPT_PERL_STATEMENT_AT)) {
			seen->key = 0;
			return false;
		}
		seen->proof = script->proof[0] >> 32;
		seen->more = script->proof[2];
	}
	*ret_line = (__u32)seen->proof;
	*ret_file = seen->more;
	return true;
}

/* What tells a sub from others; false when it is not there. */
static __always_inline bool script_perl_prove(struct script *script, __u64 sub, __u64 *ret)
{
	struct script_seen *seen;
	__u64 body = 0;

	if (!script_is_seen(script, sub, SEEN_CODE, &seen)) {
		if (sub & 7 || walk_read(&body, sizeof(body), sub) ||
		    walk_read(script->proof, sizeof(script->proof), body + SCRIPT_PERL_SUB_AT)) {
			seen->key = 0;
			return false;
		}
		script_keep(script, seen, script_perl_proof(script->proof, PERL_CODE_SUB), 0, 0);
	}
	*ret = seen->proof;
	return true;
}

/* A sub, by its body: closures of the same code have all that is read of it in common. */
static __always_inline bool script_perl_sub(struct script *script, struct sample *sample,
					    const __u64 *context, __u64 flags)
{
	__u64 sub = context[script->process.perl.sub / 8 & 15], file, proof;
	__u32 line;

	if (!script_perl_statement(script, &line, &file) || !script_perl_prove(script, sub, &proof))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	return script_perl_put_code(script, sample, sub, proof, flags, line);
}

/* Code that is in no sub, by the name of its file. */
static __always_inline bool script_perl_file(struct script *script, struct sample *sample,
					     enum script_perl_code kind, __u64 flags)
{
	__u64 file, proof;
	__u32 line;

	if (!script_perl_statement(script, &line, &file))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	if (!file) /* nothing of it runs yet */
		return true;
	script->proof[0] = script->proof[1] = script->proof[2] = script->proof[3] = 0;
	walk_read(script->proof, script->process.perl.file_bytes & 31, file);
	proof = script_perl_proof(script->proof, kind);
	script_had_note(&script->had, proof);
	return script_perl_put_code(script, sample, file, proof, flags, line);
}

/* Behind the outermost context of a stack. */
static __always_inline bool script_perl_leave(struct script *script, struct sample *sample)
{
	__u64 outer = script->words[PERL_STACK_OUTER];

	if (!outer) {
		script_perl_file(script, sample, PERL_CODE_PROGRAM, SCRIPT_ENDS_RUN);
		return false;
	}
	if (script->run > 1 &&
	    !script_perl_put(script, sample, SCRIPT_IS_MARK | SCRIPT_ENDS_RUN, 0))
		return false;
	return script_perl_enter(script, outer) || script_cut(script, sample, SCRIPT_UNREADABLE);
}

/* A sub that was called on this stack is a BEGIN block, which is gone with its statements soon. */
static __always_inline bool script_perl_is_loading(const struct script *script)
{
	__u64 last = script->words[PERL_STACK_TOP_CALL];

	return (script->process.perl.links_calls ? last >> 32 : (__u32)last) ==
	       PERL_STACK_IS_LOADING;
}

/* A call: puts its frame, if it is one, and takes the statement outside of it. */
static __always_inline bool script_perl_call(struct script *script, struct sample *sample,
					     const __u64 *context, __s32 index)
{
	__u8 kind = context[PERL_CONTEXT_KIND];
	bool is_eval = (kind & PERL_KIND) == PERL_EVAL, goes_on;
	__u64 flags = context[PERL_CONTEXT_RETURN] ? 0 : SCRIPT_ENDS_RUN;

	if (is_eval && kind & PERL_EVAL_IS_BLOCK)
		return true;
	if (!is_eval && kind & PERL_SUB_IS_FAKE && script->run == index + 1)
		flags = 0;
	if (!context[PERL_CONTEXT_RETURN])
		script->run = index;
	if (!is_eval && flags && script_perl_is_loading(script)) {
		script->limit = context[PERL_CONTEXT_STATEMENT];
		return script_perl_file(script, sample, PERL_CODE_BEGIN, flags);
	}
	if (is_eval)
		goes_on = script_perl_file(
			script, sample, kind & PERL_EVAL_IS_TEXT ? PERL_CODE_TEXT : PERL_CODE_FILE,
			flags);
	else if (!(kind & PERL_SUB_IS_FAKE))
		goes_on = script_perl_sub(script, sample, context, flags);
	else
		return !flags || script_perl_put(script, sample, SCRIPT_IS_MARK | flags, 0);
	script->limit = context[PERL_CONTEXT_STATEMENT];
	return goes_on;
}

/* Looks at the context at hand and goes to the one outside of it. False when there is none. */
static __always_inline bool script_perl_frame(struct script *script, struct sample *sample)
{
	const struct script_perl_layout *layout = &script->process.perl;
	__s32 index = script->index;
	const __u64 *context;
	__u64 at;
	__u8 kind;

	if (!script->frame)
		return false;
	if (index < 0)
		return script_perl_leave(script, sample);
	at = script->words[PERL_STACK_CONTEXTS] + (__u64)index * layout->context_bytes;
	if (index >= SCRIPT_PERL_CONTEXTS_MAX ||
	    !script_window_read(&script->frames, at, SCRIPT_PERL_CONTEXT_BYTES,
				SCRIPT_OUTWARDS_IS_DOWN))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	context = script_window_at(&script->frames, at);
	kind = context[PERL_CONTEXT_KIND] & PERL_KIND;
	script->index = layout->links_calls ? (__s32)context[PERL_CONTEXT_NEXT] : index - 1;
	if (kind == PERL_SUB || kind == PERL_FORMAT || kind == PERL_EVAL) {
		if (script->index >= index) /* it is being made */
			return script_cut(script, sample, SCRIPT_UNREADABLE);
		return script_perl_call(script, sample, context, index);
	}
	return !layout->links_calls || script_cut(script, sample, SCRIPT_UNREADABLE);
}

/* When script_perl_frame was called as often as it may: the contexts outside are not shown. */
static __always_inline void script_perl_end(struct script *script, struct sample *sample)
{
	script_cut(script, sample, SCRIPT_TOO_DEEP);
}

#endif
