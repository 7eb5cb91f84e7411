/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script - walks the frames of an interpreter, from the thread's state outwards.
 *
 *   thread pointer -> thread state -> innermost frame -> previous -> ...
 *
 * Where CPython's state is found: script_python.h.
 *
 * The native walk of such a thread shows the interpreter's loop and not what it runs. Each frame
 * gives two words: the code object with flags, and the position in it with a proof (a hash) of the
 * object. The agent (agent/runtime) finds their names; it also supplies the layout: struct
 * script_process.
 *
 * Plain C over walk_read (walk.h), so that the same code runs in the kernel and over forged memory
 * (tests/unit/walk). Whatever a process has there is hostile: every walk ends after
 * SCRIPT_FRAMES_MAX frames, and reads nothing but that process's memory.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_H
#define FIRN_AGENT_BPF_SCRIPT_H

#include <stdbool.h>

#include "agent/bpf/script_lasting.h"
#include "agent/bpf/script_proof.h"
#include "agent/bpf/script_window.h"
#include "agent/bpf/shared.h"
#include "agent/bpf/thread_keys.h"

/* Of LuaJIT (script_lua.h). */
struct script_lua {
	__u64 thread;	 /* whose frames are at hand */
	__u64 low, high; /* of its stack */
	__u64 pc;	 /* what the frame at hand runs next; 0 = not known */
	__u64 outer;	 /* of the last run: the base outside of it; 0 = none */
	__u64 trace;	 /* that the frame at hand runs; 0 = none */
	__u32 offset;
	bool is_inner; /* the frame at hand belongs to the one inside of it */
};

#define SCRIPT_PHP_FUNCTION_WORDS 64u /* a power of two: at most, up to its lines */

#define SCRIPT_TEXT_BYTES_MAX 256u /* a power of two */

/* Text at hand. */
struct script_text {
	__u64 proof;
	bool is_sure; /* it will be the same whenever the text is read */
	__u64 words[SCRIPT_TEXT_BYTES_MAX / 8];
};

/* What something's text says, of the last one that was read in this sample; 0 = none yet. */
struct script_said {
	__u64 owner, proof;
	bool is_sure; /* as of a text */
};

/* Of PHP (script_php.h). */
struct script_php {
	/* Generators that have handed over to the one that runs: */
	__u64 generator;   /* the next one, from the outermost on */
	__u32 delegate_at; /* in each: that which it has handed over to */
	__u32 left, count; /* of them, without the one that runs */
	/* The function at hand: */
	__u64 function[SCRIPT_PHP_FUNCTION_WORDS];
	bool is_sure; /* the proof will be the same whenever the function is read */
	struct script_text text;
	struct script_said class, file;
};

#define SCRIPT_PUC_THREADS 8	  /* a power of two: that have resumed one another */
#define SCRIPT_PUC_STACK_WORDS 16 /* that are looked at in one step */

/* Of PUC-Rio's Lua (script_puc.h). */
struct script_puc {
	__u64 at;	 /* the next word of the stack */
	__u32 left;	 /* such words, until there is no further thread */
	__u32 count;	 /* of threads */
	__u64 low, high; /* of the stack of the thread at hand */
	__u64 seen[SCRIPT_PUC_THREADS];
	__u64 stack[SCRIPT_PUC_STACK_WORDS];
	bool is_main;  /* the thread at hand: there is none outside of it */
	bool is_inner; /* the call at hand is the innermost of all */
};

#define SCRIPT_PYTHON_STACK_WORDS 16u /* that are looked at in one step */

/* Of Python (script_python.h). */
struct script_python {
	__u64 leaf, leaf_bytes; /* the C frame of the interrupted function; 0 bytes = not known */
	__u64 state;		/* whose frames are shown */
	__u64 other, wanted;	/* a state that may be the thread's, and its innermost frame */
	__u64 at;		/* the next word of the stack */
	__u32 left;		/* such words */
	bool has_others;	/* there are several interpreters */
	__u64 stack[SCRIPT_PYTHON_STACK_WORDS];
};

struct script {
	__u64 frame; /* the next one; 0 = none */
	__u64 limit; /* of Ruby: where its frames end; of PHP: see script_php_frame; of Perl: the
			statement at hand */
	__s32 index; /* of Perl: the next context of the stack, which is `frame`; of LuaJIT: the
			next place */
	__s32 run;   /* ... and the outermost one that a run of this stack was seen to begin with */
	__u32 at;    /* where its words go in sample.frames */
	__u32 room;
	struct script_process process;
	struct script_lua lua;
	struct script_php php;
	struct script_puc puc;
	struct script_python python;
	__u64 sample; /* which one, for what was seen in it */
	__u64 words[SCRIPT_FRAME_WORDS];
	__u64 proof[SCRIPT_PROOF_WORDS];
	struct script_window frames; /* as far as they lie side by side */
	struct script_window scopes; /* of Ruby: the ends of their environments */
	struct script_seen seen[SCRIPT_SEEN];
	struct script_had had;
	struct script_lasting_table lasting; /* of PHP */
};

/* True if the object was seen in this sample. Sets where it is noted, or to be noted. */
static __always_inline bool script_is_seen(struct script *script, __u64 object,
					   enum script_seen_kind kind, struct script_seen **ret)
{
	__u64 key = object << 3 | kind;
	struct script_seen *seen = script_seen_place(script->seen, key);

	*ret = seen;
	if (seen->key == key && seen->sample == script->sample)
		return true;
	seen->key = key;
	seen->sample = script->sample;
	seen->proof = seen->more = 0;
	return false;
}

/*
 * Notes what was read of the object that the agent knows by its proof and `address`: a new one
 * wakes it. 0 = by the proof alone, which copies have in common.
 */
static __always_inline void script_keep(struct script *script, struct script_seen *seen,
					__u64 proof, __u64 more, __u64 address)
{
	seen->proof = proof;
	seen->more = more;
	script_had_note(&script->had, proof ^ address * SCRIPT_PROOF_MIX);
}

/* The slot of a pthread key, whose number the interpreter keeps. */
static __always_inline bool script_find_key(const struct script *script, bool is_number, __u64 at,
					    __u64 thread, __u64 *ret)
{
	__u32 key[2] = { 1 }; /* is it created, and its number */

	if (is_number ? walk_read(&key[1], sizeof(key[1]), at) : walk_read(key, sizeof(key), at))
		return false;
	return key[0] && thread_key_find(thread, script->process.keys_at, key[1], ret);
}

/* A variable of a thread, by the module's number and its offset there. */
static __always_inline bool script_find_dynamic(const struct script *script, __u64 at, __u64 thread,
						__u64 *ret)
{
	__u64 slot[2] = { 0 }, block = 0;

	if (walk_read(slot, sizeof(slot), at) ||
	    !thread_block_find(thread, script->process.keys_at, slot[0], &block))
		return false;
	*ret = block + slot[1];
	return true;
}

/* Where a thread keeps a word, by `form` (enum script_state_form) and what goes with it. */
static __always_inline bool script_find_word(const struct script *script, __u16 form, __u64 at,
					     __u64 thread, __u64 *ret)
{
	__u64 offset = at;

	switch (form) {
	case SCRIPT_STATE_KEY:
	case SCRIPT_STATE_KEY_NUMBER:
		return script_find_key(script, form == SCRIPT_STATE_KEY_NUMBER, at, thread, ret);
	case SCRIPT_STATE_DYNAMIC:
		return script_find_dynamic(script, at, thread, ret);
	case SCRIPT_STATE_SLOT:
		if (walk_read(&offset, sizeof(offset), at))
			return false;
		*ret = thread + offset;
		return true;
	case SCRIPT_STATE_STATIC:
		*ret = thread + offset;
		return true;
	default:
		return false;
	}
}

/* Where the thread keeps the address of its interpreter's state. */
static __always_inline bool script_find_state(const struct script *script, __u64 thread, __u64 *ret)
{
	return script_find_word(script, script->process.state_form, script->process.state_at,
				thread, ret);
}

static __always_inline __u64 script_word_of(const __u64 *frame, __u32 at)
{
	return frame[at / 8 & (SCRIPT_FRAME_WORDS - 1)];
}

static __always_inline __u64 script_word(const struct script *script, __u32 at)
{
	return script_word_of(script->words, at);
}

/* Tells an object from another one that came to its place. */
static __always_inline __u32 script_prove(struct script *script, __u64 object)
{
	const struct script_layout *layout = &script->process.layout;
	struct script_seen *seen;

	if (script_is_seen(script, object, SEEN_CODE, &seen))
		return (__u32)seen->proof;
	if (walk_read(script->proof, sizeof(script->proof), object + layout->proof))
		return 0;
	if (layout->proof_words < SCRIPT_PROOF_WORDS)
		script->proof[SCRIPT_PROOF_WORDS - 1] = 0;
	script_keep(script, seen, script_proof(script->proof), 0, object);
	return (__u32)seen->proof;
}

static __always_inline void script_put(struct script *script, struct sample *sample, __u64 first,
				       __u64 second)
{
	__u32 at = script->at;

	if (at >= SAMPLE_WORDS_MAX - 1)
		return;
	sample->frames[at] = first;
	sample->frames[at + 1] = second;
	script->at = at + 2;
}

static __always_inline bool script_cut(struct script *script, struct sample *sample,
				       enum script_end why)
{
	script_put(script, sample, SCRIPT_IS_CUT, why);
	return false;
}

/* What the frame says of the end of a run: SCRIPT_ENDS_RUN, SCRIPT_IS_MARK. */
static __always_inline __u64 script_flags(const struct script *script, const __u64 *frame)
{
	const struct script_layout *layout = &script->process.layout;
	__u32 at = layout->boundary;
	__u8 value = script_word_of(frame, at) >> 8 * (at & 7);

	switch (layout->boundary_kind) {
	case SCRIPT_EACH_FRAME:
		return SCRIPT_ENDS_RUN;
	case SCRIPT_LAST_FRAME:
		return value ? SCRIPT_ENDS_RUN : 0;
	default:
		return value >= layout->boundary_value ? SCRIPT_ENDS_RUN | SCRIPT_IS_MARK : 0;
	}
}

/* True if the address is in the C frame of the interrupted function. */
static __always_inline bool script_is_in_leaf(const struct script *script, __u64 address)
{
	return address - script->python.leaf < script->python.leaf_bytes;
}

/* Notes the frame at hand and goes to the one outside of it. False when there is none. */
static __always_inline bool script_frame(struct script *script, struct sample *sample)
{
	const struct script_layout *layout = &script->process.layout;
	__u32 bytes = (layout->frame_bytes + 7u) & ~7u;
	__u64 at = script->frame, object, position, flags;
	const __u64 *frame;

	if (!at)
		return false;
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	if (bytes > 8 * SCRIPT_FRAME_WORDS)
		bytes = 8 * SCRIPT_FRAME_WORDS;
	if (!script_window_read(&script->frames, at, bytes, SCRIPT_OUTWARDS_IS_DOWN))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	frame = script_window_at(&script->frames, at);
	flags = script_flags(script, frame);
	script->frame = script_word_of(frame, layout->previous);
	if (flags & SCRIPT_IS_MARK) {
		script_put(script, sample, flags,
			   script_is_in_leaf(script, at) ? SCRIPT_RUNS_ARE_INNER : 0);
		return true;
	}
	object = script_word_of(frame, layout->object) & ~(__u64)SCRIPT_FLAGS;
	position = script_word_of(frame, layout->position);
	if (!layout->position_is_index)
		position -= object + layout->object_start;
	script_put(script, sample, object | flags,
		   (__u64)script_prove(script, object) << 32 | (__u32)position);
	return true;
}

#endif
