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
 * Plain C, like script.h. Layouts: PHP's Zend/zend_compile.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_PHP_H
#define FIRN_AGENT_BPF_SCRIPT_PHP_H

#include "agent/bpf/script.h"

#define SCRIPT_PHP_FRAME_BYTES 56u
#define SCRIPT_PHP_FUNCTION_BYTES 24u
#define SCRIPT_PHP_FILE_BYTES 16u

/* In script.words: a call frame, the head of its function, the file and lines of that. */
enum script_php_word {
	PHP_FRAME_POSITION = 0,
	PHP_FRAME_FUNCTION = 3,
	PHP_FRAME_FLAGS = 5,
	PHP_FRAME_PREVIOUS = 6,
	PHP_FUNCTION_KIND = 7,
	PHP_FUNCTION_NAME = 8,
	PHP_FUNCTION_FILE = 10,
};

#define PHP_FLAG_TOP (1u << 17) /* of a frame: C has called it */
#define PHP_KIND_INTERNAL 1u	/* of a function: in C */

/* Where the loop has its frame and position, of DWARF's registers. */
#define PHP_REGISTER_FRAME 14
#define PHP_REGISTER_POSITION 15

/* Sets script->frame. False when the process runs no PHP. */
static __always_inline bool script_php_start(struct script *script)
{
	script->frame = 0;
	script->limit = 0;
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
static __always_inline bool script_php_function(struct script *script)
{
	__u64 function = script->words[PHP_FRAME_FUNCTION];

	script->words[PHP_FUNCTION_FILE] = script->words[PHP_FUNCTION_FILE + 1] = 0;
	if (function & 7 ||
	    walk_read(&script->words[PHP_FUNCTION_KIND], SCRIPT_PHP_FUNCTION_BYTES, function))
		return false;
	return (__u8)script->words[PHP_FUNCTION_KIND] == PHP_KIND_INTERNAL ||
	       !walk_read(&script->words[PHP_FUNCTION_FILE], SCRIPT_PHP_FILE_BYTES,
			  function + script->process.php.file);
}

static __always_inline void script_php_put(struct script *script, struct sample *sample)
{
	bool is_internal = (__u8)script->words[PHP_FUNCTION_KIND] == PHP_KIND_INTERNAL;
	__u64 proof = script_php_proof(&script->words[PHP_FUNCTION_NAME]);
	__u64 object = SCRIPT_ADDRESS(script->words[PHP_FRAME_FUNCTION]);
	__u32 position = (__u32)script->words[PHP_FRAME_POSITION];

	/* The one function in C without a name is where a fiber begins. */
	if (is_internal && !script->words[PHP_FUNCTION_NAME]) {
		script_put(script, sample, SCRIPT_IS_MARK | SCRIPT_ENDS_RUN, SCRIPT_OTHER_STACK);
		return;
	}
	if (is_internal)
		position = 0;
	else if (script->words[PHP_FRAME_FLAGS] & PHP_FLAG_TOP)
		object |= SCRIPT_ENDS_RUN;
	script_put(script, sample, object | proof << SCRIPT_PLACE_SHIFT,
		   (proof >> 32) << 32 | position);
}

/*
 * Notes the frame at hand and goes to the one outside of it. False when there is none. A position
 * that is known better than by the innermost frame is in script->limit.
 */
static __always_inline bool script_php_frame(struct script *script, struct sample *sample)
{
	if (!script->frame)
		return false;
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	if (script->frame & 7 || walk_read(script->words, SCRIPT_PHP_FRAME_BYTES, script->frame))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	script->frame = script->words[PHP_FRAME_PREVIOUS];
	if (script->limit)
		script->words[PHP_FRAME_POSITION] = script->limit;
	script->limit = 0;
	if (!script->words[PHP_FRAME_FUNCTION])
		return true;
	if (!script_php_function(script))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	script_php_put(script, sample);
	return true;
}

#endif
