/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_python - which thread state of CPython a thread runs, and what is known of where its
 * frames belong.
 *
 * Up to 3.11 a pthread key names the first state that was made in the thread. In a sub-interpreter
 * it runs another one, of which nothing of the thread's says anything: a state that has the
 * interpreter's lock is known, but not which thread that is. It is this one if the state's
 * innermost frame is in a register, or on the stack: each call of the loop has its frame there. For
 * a thread that has given up the lock, the first state remains.
 *
 * A state lists its own frames alone, and so does a greenlet. The loops outside of them have none,
 * as has a loop that has just been entered. What that one has on the C stack tells them apart, if
 * it was interrupted itself (script_note in shared.h).
 *
 * Plain C, like script.h. Layouts: CPython's pystate.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_PYTHON_H
#define FIRN_AGENT_BPF_SCRIPT_PYTHON_H

#include "agent/bpf/script.h"

#define SCRIPT_PYTHON_SCAN_WORDS 2048u /* of the stack */
#define SCRIPT_PYTHON_SCAN_STEPS (SCRIPT_PYTHON_SCAN_WORDS / SCRIPT_PYTHON_STACK_WORDS)

/*
 * The state of a thread that has given up the interpreter's lock: CPython from 3.12 on then leaves
 * it to the pthread key alone, from 3.15 on to another variable. 0 = there is none.
 */
static __always_inline __u64 script_detached_state(const struct script *script, __u64 thread)
{
	const struct script_process *process = &script->process;
	__u64 at = 0, state = 0, use = 1; /* of a key, with glibc: odd while it is in use */

	if (!process->key_at ||
	    !script_find_word(script, process->key_form, process->key_at, thread, &at) ||
	    walk_read(&state, sizeof(state), at) ||
	    (process->key_form == SCRIPT_STATE_KEY && !process->keys_at &&
	     walk_read(&use, sizeof(use), at - 8)))
		return 0;
	return use & 1 ? state : 0;
}

/* The state that the thread itself names. 0 = there is none. */
static __always_inline __u64 script_named_state(const struct script *script, __u64 thread)
{
	__u64 at = 0, state = 0;

	if (!script_find_state(script, thread, &at) || walk_read(&state, sizeof(state), at))
		return 0;
	return state ? state : script_detached_state(script, thread);
}

/* The innermost frame of a state. 0 = it runs nothing. */
static __always_inline __u64 script_first_frame(const struct script *script, __u64 state)
{
	const struct script_layout *layout = &script->process.layout;
	__u64 at = 0;

	if (!state || walk_read(&at, sizeof(at), state + layout->first_frame))
		return 0;
	if (layout->first_frame_hop != SCRIPT_NO_HOP &&
	    walk_read(&at, sizeof(at), at + layout->first_frame_hop))
		return 0;
	return at;
}

/* False if another state has the interpreter's lock, or none: that is in python.other then. */
static __always_inline bool script_has_lock(struct script *script, __u64 state)
{
	__u64 *current = &script->python.other;

	return !script->process.current_at ||
	       walk_read(current, sizeof(*current), script->process.current_at) ||
	       *current == state;
}

static __always_inline bool script_has_interpreters(const struct script *script)
{
	__u64 newest = 0, older = 0;

	return script->process.interpreters_at &&
	       !walk_read(&newest, sizeof(newest), script->process.interpreters_at) && newest &&
	       !walk_read(&older, sizeof(older), newest) && older;
}

/* The state that has the lock may be this thread's: sets what is to be looked for, and where. */
static __always_inline void script_seek_other(struct script *script, const __u64 *registers)
{
	struct script_python *python = &script->python;

	python->has_others = script_has_interpreters(script);
	python->wanted = script_first_frame(script, python->other);
	if (!python->wanted)
		return;
	python->at = registers[REGISTERS_SP] & ~7ull;
	/* A loop that was interrupted itself has the lock, whoever else may be there. */
	python->left = python->has_others
			       ? SCRIPT_PYTHON_SCAN_WORDS
			       : (__u32)(python->leaf_bytes / 8) & (SCRIPT_PYTHON_SCAN_WORDS - 1);
	WALK_UNROLL
	for (int i = 0; i < REGISTERS_PRESERVED; i++)
		if (registers[i] == python->wanted)
			script->frame = python->wanted;
}

/*
 * `leaf_end`: where the C frame of the interrupted function ends, 0 = not known. After it come
 * script_python_seek, until it says false, script_python_settle, and script_frame.
 */
static __always_inline void script_python_start(struct script *script, __u64 thread,
						const __u64 *registers, __u64 leaf_end)
{
	struct script_python *python = &script->python;

	python->leaf = registers[REGISTERS_SP];
	python->leaf_bytes = leaf_end > python->leaf ? leaf_end - python->leaf : 0;
	python->state = script_named_state(script, thread);
	script->frame = script_first_frame(script, python->state);
	python->wanted = 0;
	python->left = 0;
	python->has_others = false;
	if (!script_has_lock(script, python->state))
		script_seek_other(script, registers);
}

/* Looks at the next words of the stack. False when that is over. */
static __always_inline bool script_python_seek(struct script *script)
{
	struct script_python *python = &script->python;
	__u32 left = python->left;

	if (!left || script->frame == python->wanted ||
	    walk_read(python->stack, sizeof(python->stack), python->at))
		return false;
	WALK_UNROLL
	for (unsigned i = 0; i < SCRIPT_PYTHON_STACK_WORDS; i++)
		if (python->stack[i] == python->wanted)
			script->frame = python->wanted;
	python->at += sizeof(python->stack);
	python->left = left > SCRIPT_PYTHON_STACK_WORDS ? left - SCRIPT_PYTHON_STACK_WORDS : 0;
	return true;
}

/* Which calls of the loop have no run, if any; 0 = not known. */
static __always_inline __u64 script_python_note(const struct script *script, bool is_other)
{
	const struct script_layout *layout = &script->process.layout;
	const struct script_python *python = &script->python;
	__u64 at = 0;

	if (python->has_others && !is_other)
		return SCRIPT_RUNS_ARE_OUTER;
	if (!layout->on_stack)
		return is_other ? SCRIPT_RUNS_ARE_INNER : 0;
	if (!walk_read(&at, sizeof(at), python->state + layout->on_stack) &&
	    script_is_in_leaf(script, at))
		return SCRIPT_RUNS_ARE_INNER;
	return 0;
}

/* What was looked for is found, or not. False when the thread runs nothing. */
static __always_inline bool script_python_settle(struct script *script, struct sample *sample)
{
	struct script_python *python = &script->python;
	bool is_other = python->wanted && script->frame == python->wanted;
	__u64 note;

	if (!script->frame)
		return false;
	if (is_other)
		python->state = python->other;
	note = script_python_note(script, is_other);
	if (note && script->room) {
		script->room--; /* all words that there are have room in a sample */
		script_put(script, sample, SCRIPT_IS_MARK, note);
	}
	return true;
}

#endif
