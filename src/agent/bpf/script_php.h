/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_php - the frames of PHP, from the innermost outwards.
 *
 *   executor globals -> call frame -> previous call frame -> ...
 *                       call frame -> function
 *
 * Each frame gives its function and the low half of the address of the instruction that it is at:
 * the function says where those begin. The loop keeps that of the innermost frame in a register,
 * and writes it to the frame before calls. Frames that the loop was entered for are flagged by PHP
 * itself; a function in C that C has called has the flag, too, but no loop.
 *
 * Copies of a closure are objects of their own, so that a function's proof says more than its
 * address, and is longer than those of others: SCRIPT_PLACE_SHIFT.
 *
 * A generator that runs another one by `yield from` has no frame in the list: a placeholder stands
 * there for all of them but the one that runs, and names the outermost. Each names the one that it
 * runs, so they are found from the outermost on, and noted from the innermost on.
 *
 * Plain C, like script.h. Layouts: PHP's Zend/zend_compile.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_PHP_H
#define FIRN_AGENT_BPF_SCRIPT_PHP_H

#include "agent/bpf/row.h"
#include "agent/bpf/script.h"

#define SCRIPT_PHP_FRAME_BYTES 56u
#define SCRIPT_PHP_FUNCTION_BYTES 24u
#define SCRIPT_PHP_FILE_BYTES 16u
#define SCRIPT_PHP_GENERATORS_MAX 64
#define SCRIPT_PHP_GENERATOR_BYTES 512u

/* In a call frame, and in script.words the head of its function, the file and lines of that. */
enum script_php_word {
	PHP_FRAME_POSITION = 0,
	PHP_FRAME_GENERATOR = 2, /* whose frame it is */
	PHP_FRAME_FUNCTION = 3,
	PHP_FRAME_OBJECT = 4,
	PHP_FRAME_FLAGS = 5,
	PHP_FRAME_PREVIOUS = 6,
	PHP_FUNCTION_KIND = 7,
	PHP_FUNCTION_NAME = 8,
	PHP_FUNCTION_FILE = 10,
};

#define PHP_FLAG_TOP (1u << 17) /* of a frame: C has called it */
#define PHP_VALUE_OBJECT 8u	/* the low byte of the same word */
#define PHP_KIND_INTERNAL 1u	/* of a function: in C */

/* Where the loop has its frame and position, of DWARF's registers. */
#define PHP_REGISTER_FRAME 14
#define PHP_REGISTER_POSITION 15

/* Sets script->frame. False when the process runs no PHP. */
static __always_inline bool script_php_start(struct script *script)
{
	script->frame = 0;
	script->limit = 0;
	script->php.left = 0;
	return !walk_read(&script->frame, sizeof(script->frame), script->process.state_at) &&
	       script->frame;
}

/* True if the address is in the loop. */
static __always_inline bool script_php_is_loop(const struct script_process *process, __u64 address)
{
	return address - process->php.code_start - process->php.loop_start <
	       process->php.loop_bytes;
}

/* Reads what tells the function from others; false when it is not there. */
static __always_inline bool script_php_read_function(struct script *script, __u64 function)
{
	script->words[PHP_FUNCTION_FILE] = script->words[PHP_FUNCTION_FILE + 1] = 0;
	if (function & 7 ||
	    walk_read(&script->words[PHP_FUNCTION_KIND], SCRIPT_PHP_FUNCTION_BYTES, function))
		return false;
	return (__u8)script->words[PHP_FUNCTION_KIND] == PHP_KIND_INTERNAL ||
	       !walk_read(&script->words[PHP_FUNCTION_FILE], SCRIPT_PHP_FILE_BYTES,
			  function + script->process.php.file);
}

enum script_php_seen {
	PHP_SEEN_READ = 1,
	PHP_SEEN_INTERNAL = 2,
	PHP_SEEN_NAMELESS = 4,
};

/* What is known of a function; more is 0 when it is not there. */
static __always_inline const struct script_seen *script_php_function(struct script *script,
								     __u64 function)
{
	struct script_seen *seen;
	__u64 what = PHP_SEEN_READ;

	if (script_is_seen(script, function, SEEN_CODE, &seen) ||
	    !script_php_read_function(script, function))
		return seen;
	if ((__u8)script->words[PHP_FUNCTION_KIND] == PHP_KIND_INTERNAL)
		what |= PHP_SEEN_INTERNAL;
	if (!script->words[PHP_FUNCTION_NAME])
		what |= PHP_SEEN_NAMELESS;
	script_keep_copy(script, seen, script_php_proof(&script->words[PHP_FUNCTION_NAME]), what);
	return seen;
}

/* A function, or what C has called, at a position. False when it is not there. */
static __always_inline bool script_php_put(struct script *script, struct sample *sample,
					   __u64 function, __u32 position, bool is_top)
{
	const struct script_seen *seen = script_php_function(script, function);
	bool is_internal = seen->more & PHP_SEEN_INTERNAL;
	__u64 proof = seen->proof, object = SCRIPT_ADDRESS(function);

	if (!seen->more)
		return false;
	/* The one function in C without a name is where a fiber begins. */
	if (is_internal && seen->more & PHP_SEEN_NAMELESS) {
		script_put(script, sample, SCRIPT_IS_MARK | SCRIPT_ENDS_RUN, SCRIPT_OTHER_STACK);
		return true;
	}
	if (is_internal)
		position = 0;
	else if (is_top)
		object |= SCRIPT_ENDS_RUN;
	script_put(script, sample, object | proof << SCRIPT_PLACE_SHIFT,
		   (proof >> 32) << 32 | position);
	return true;
}

/* Notes the frame of the generator at hand, in the place that is its. */
static __always_inline void script_php_put_generator(struct script *script, struct sample *sample)
{
	__u32 frame_at = 8 * (script->process.php.generator & 0xf);
	__u64 frame = 0;

	if (walk_read(&frame, sizeof(frame), script->php.generator + frame_at) || frame & 7 ||
	    walk_read(script->words, SCRIPT_PHP_FRAME_BYTES, frame) ||
	    script->words[PHP_FRAME_GENERATOR] != script->php.generator ||
	    !script->words[PHP_FRAME_FUNCTION] || /* no loop runs it: */
	    !script_php_put(script, sample, script->words[PHP_FRAME_FUNCTION],
			    (__u32)script->words[PHP_FRAME_POSITION], false))
		script_put(script, sample, SCRIPT_IS_CUT, SCRIPT_UNSURE);
}

/* One step inwards, from the outermost on. */
static __always_inline void script_php_generator(struct script *script, struct sample *sample)
{
	struct script_php *php = &script->php;
	__u32 at = script->at;

	php->left--;
	script->at = at + 2 * php->left;
	script_php_put_generator(script, sample);
	script->at = php->left ? at : at + 2 * php->count;
	if (walk_read(&php->generator, sizeof(php->generator), php->generator + php->delegate_at))
		php->generator = 0;
}

/* The frame at hand is that of no function, at `placeholder`. False when there is no room. */
static __always_inline bool script_php_delegates(struct script *script, struct sample *sample,
						 const __u64 *frame, __u64 placeholder)
{
	struct script_php *php = &script->php;
	__u32 back = 8 * (script->process.php.generator >> 4);
	__u64 generator = frame[PHP_FRAME_OBJECT];
	__u64 delegate_at = placeholder - generator - back, inner = 0;
	__u32 count = 0;

	if ((__u8)frame[PHP_FRAME_FLAGS] != PHP_VALUE_OBJECT || !back ||
	    delegate_at > SCRIPT_PHP_GENERATOR_BYTES)
		return true;
	php->generator = generator;
	WALK_KEEP_LOOP
	for (int i = 0; i <= SCRIPT_PHP_GENERATORS_MAX; i++) {
		if (walk_read(&inner, sizeof(inner), generator + delegate_at) || !inner)
			break;
		generator = inner;
		count++;
	}
	if (count > SCRIPT_PHP_GENERATORS_MAX || count > script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room -= count;
	php->delegate_at = (__u32)delegate_at;
	php->left = php->count = count;
	return true;
}

/*
 * Notes the frame at hand and goes to the one outside of it. False when there is none. A position
 * that is known better than by the innermost frame is in script->limit.
 */
static __always_inline bool script_php_frame(struct script *script, struct sample *sample)
{
	__u64 at = script->frame, position;
	const __u64 *frame;

	if (script->php.left) {
		script_php_generator(script, sample);
		return true;
	}
	if (!at)
		return false;
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	if (!script_window_read(&script->frames, at, SCRIPT_PHP_FRAME_BYTES,
				SCRIPT_OUTWARDS_IS_DOWN))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	frame = script_window_at(&script->frames, at);
	script->frame = frame[PHP_FRAME_PREVIOUS];
	position = script->limit ? script->limit : frame[PHP_FRAME_POSITION];
	script->limit = 0;
	if (!frame[PHP_FRAME_FUNCTION])
		return script_php_delegates(script, sample, frame, at);
	return script_php_put(script, sample, frame[PHP_FRAME_FUNCTION], (__u32)position,
			      frame[PHP_FRAME_FLAGS] & PHP_FLAG_TOP) ||
	       script_cut(script, sample, SCRIPT_UNREADABLE);
}

#endif
